/** `attest verify FILE --bundles DIR`: one file against the one of many bundles that is of it. */
import { join } from 'node:path';
import { count } from '../../proof/export/object-check.js';
import { printablePath } from '../../proof/set/path.js';
import { type Verdict, type Verification, verifyBundle } from '../../proof/verify/verify.js';
import { printable } from '../../protocol/printable.js';
import { type Cli, print } from '../cli.js';
import { artifactSha256 } from '../input/artifact.js';
import { EXIT_CODES } from '../output/exit-codes.js';
import { formatVerification, verificationJson } from '../output/verification-text.js';
import { findInside } from '../sets/folder-files.js';
import { listBundles, readBundleBytes } from './find-bundles.js';
import { verificationCase } from './junit-cases.js';
import { type JUnitCase, writeJUnit } from './junit-report.js';
import type { BundlesAsked } from './verify-with-bundles.js';

type Flags = { bundles: string; junit?: string; json?: boolean };

type Found = { readonly bundle: string; readonly verification: Verification };

/** Verifies a file with its bundle, prints the report and sets the exit code. Throws UsageError, and what hashing throws. */
export async function verifyFileWithBundles(
  cli: Cli,
  file: string,
  flags: Flags,
  asked: BundlesAsked,
): Promise<void> {
  const startedAt = cli.now();
  const { junit, json, bundles } = flags;
  const { origin } = asked;
  const { found, searched, unread } = await findBundle(bundles, await artifactSha256(cli, file), asked);
  const none = noBundle(bundles, searched, unread);
  if (junit !== undefined) {
    const one = found === undefined ? none.testCase(file) : verificationCase(file, found.verification);
    await writeJUnit(junit, { cases: [one], startedAt, endedAt: cli.now() });
  }
  cli.exitCode = EXIT_CODES[found?.verification.verdict ?? none.verdict];
  if (json) {
    const { verdict, summary } = none;
    const report = found
      ? { bundle: found.bundle, ...verificationJson(found.verification, origin) }
      : { verdict, summary, trust_roots: origin };
    print(cli, JSON.stringify(report));
    return;
  }
  const lines = found
    ? [`Bundle ${printablePath(found.bundle)}`, ...formatVerification(found.verification, origin)]
    : [none.summary];
  for (const line of lines) print(cli, printable(line));
}

/**
 * The first bundle of this digest (lower-case hex) that is verified, else the first of it. Only files that have the digest
 * in their text are parsed. `unread`: files that could not be read.
 */
async function findBundle(
  folder: string,
  sha256: string,
  { options, outputs }: BundlesAsked,
): Promise<{ found: Found | undefined; searched: number; unread: number }> {
  const omitted = new Set(outputs.flatMap((path) => findInside(folder, path) ?? []));
  const files = listBundles(folder, (path) => omitted.has(path));
  let found: Found | undefined;
  let unread = 0;
  for (const { path, problem } of files) {
    const read = problem === undefined ? readBundleBytes(join(folder, path)) : { problem };
    if ('problem' in read) unread++;
    else if (Buffer.from(read.bytes.buffer, read.bytes.byteOffset, read.bytes.length).includes(sha256)) {
      const verification = await verifyBundle(read.bytes, { ...options, artifactSha256: sha256 });
      if (found === undefined || verification.verdict === 'verified') found = { bundle: path, verification };
      if (verification.verdict === 'verified') break;
    }
  }
  return { found, searched: files.length, unread };
}

/** What to report if there is no bundle of the file: one that could not be read may be it. */
function noBundle(folder: string, searched: number, unread: number) {
  const among = `none of the ${count(searched, 'file')} below ${printablePath(folder)} that end with .json`;
  const verdict: Verdict = unread === 0 ? 'not_verified' : 'could_not_check';
  const summary =
    unread === 0
      ? `Not verified: ${among} is a bundle of this file.`
      : `Could not be checked: ${among} is a bundle of this file, but ${unread} could not be read.`;
  const kind = unread === 0 ? 'failure' : 'error';
  const testCase = (name: string): JUnitCase => ({ name, result: { kind, type: 'extra', message: summary } });
  return { verdict, summary, testCase };
}
