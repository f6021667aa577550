import { printablePath } from '../set/path.js';
import { countFiles, type ProvenSet } from '../set/verify-set.js';
import type { Statement } from '../statement/statement.js';
import { instantText } from './instant.js';
import type { Step } from './report.js';

/** Who may vouch for a time. */
type Voucher = { readonly name: string; readonly time?: Date; readonly operator?: string };

/** One sentence: the proven facts, or the first reason why there are none. */
export function summarize(
  verdict: 'verified' | 'not_verified' | 'could_not_check',
  steps: readonly Step[],
  vouchers: readonly Voucher[],
  proven: { readonly statement?: Statement; readonly set?: ProvenSet; readonly existedBy?: Date },
): string {
  if (verdict === 'verified' && proven.statement) {
    return proof(subjectOf(proven.set), proven.statement, vouchers, proven.existedBy);
  }
  const status = verdict === 'not_verified' ? 'failed' : 'not_checked';
  const reason = steps.find((step) => step.status === status);
  const opening = verdict === 'not_verified' ? 'Not verified' : 'Could not be checked';
  return `${opening}: ${reason?.message ?? 'unknown'}.`;
}

/** What was attested, to begin the sentence with. */
function subjectOf(set: ProvenSet | undefined): string {
  if (set === undefined) return 'This artifact';
  const files = `set of ${countFiles(set.head.entries)}`;
  return set.member
    ? `This artifact is ${printablePath(set.member.entry.path)} in the ${files} that`
    : `The ${files}`;
}

function proof(
  subject: string,
  { submissionId, environment, project, identity }: Statement,
  vouchers: readonly Voucher[],
  existedBy: Date | undefined,
): string {
  const id = `${submissionId}${environment === 'test' ? ' (test)' : ''}`;
  const who = identity === undefined ? '' : `, submitted by ${identity.subject} of ${identity.issuer}`;
  const what = `${subject} was attested under ${id} by the project ${project}${who}`;
  if (existedBy === undefined) return `${what}; no witness says when.`;
  const names = vouchers.filter(({ time }) => time?.getTime() === existedBy.getTime()).map(nameOf);
  return `${what}${who === '' ? '' : ','} and existed no later than ${instantText(existedBy)} according to ${names.join(' and ')}.`;
}

function nameOf({ name, operator }: Voucher): string {
  return operator === 'self' ? `${name} (the operator’s own clock)` : name;
}
