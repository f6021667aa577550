/** What was verified as test cases, one a file: failures, and errors of what could not be checked. */
import type { FileFinding } from '../../proof/set/compare-files.js';
import type { Step } from '../../proof/verify/report.js';
import type { Verification } from '../../proof/verify/verify.js';
import type { JUnitCase, JUnitResult } from './junit-report.js';
import type { MatchFinding } from './match-files.js';

/** The test case of one bundle that was verified. */
export function verificationCase(name: string, { verdict, summary, steps }: Verification): JUnitCase {
  if (verdict === 'verified') return { name };
  const kind = verdict === 'not_verified' ? 'failure' : 'error';
  return { name, result: { kind, type: verdict, message: summary, detail: openLines(steps) } };
}

/** The test case of a path of a set, or of a file; none of an entry that is withheld, which has no path. */
export function setCases(finding: FileFinding, extraOk: boolean): JUnitCase[] {
  if (finding.status === 'withheld') return [];
  const { status, path: name } = finding;
  switch (status) {
    case 'ok':
      return [{ name }];
    case 'changed':
      return [{ name, result: failure(status, 'the file is not the one that the set has at this path') }];
    case 'missing':
      return [{ name, result: failure(status, 'the set has a file at this path, and the folder has none') }];
    case 'extra':
      return [{ name, result: extra('the set has no file at this path', extraOk) }];
  }
}

/** The test case of a file, or of a bundle that is of none. */
export function matchCase(finding: MatchFinding, extraOk: boolean): JUnitCase {
  switch (finding.status) {
    case 'ok':
      return { name: finding.path };
    case 'changed': {
      const message = `the file is not the one of its bundle ${finding.bundle}`;
      return { name: finding.path, result: failure(finding.status, message) };
    }
    case 'missing': {
      const message = `no file is the one of the bundle ${finding.bundle}`;
      return { name: finding.path, result: failure(finding.status, message) };
    }
    case 'extra':
      return { name: finding.path, result: extra('no bundle is of this file', extraOk) };
    default: {
      const { status, path, bundle, reason, steps = [] } = finding;
      const kind = status === 'failed' ? 'failure' : 'error';
      const message = `${bundle}: ${reason}`;
      return { name: path ?? bundle, result: { kind, type: status, message, detail: openLines(steps) } };
    }
  }
}

function failure(type: string, message: string): JUnitResult {
  return { kind: 'failure', type, message };
}

function extra(message: string, isOk: boolean): JUnitResult {
  return { kind: isOk ? 'skipped' : 'failure', type: 'extra', message };
}

/** A line for each step that did not pass. */
function openLines(steps: readonly Step[]): string[] {
  return steps
    .filter(({ status }) => status !== 'passed')
    .map(
      ({ name, status, message }) => `${name} ${status === 'failed' ? 'failed' : 'not checked'}: ${message}`,
    );
}
