import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { ParsedBundle } from '../../../proof/verify/read/parsed-bundle.js';
import type { WitnessFinding } from '../../../proof/verify/steps/witness-step.js';
import type { Verification } from '../../../proof/verify/verify.js';
import { printable } from '../../../protocol/printable.js';
import { Instant } from '../instant.tsx';
import { StatusIcon, StatusWord } from './status.tsx';
import { kindText } from './step-texts.js';

/** The witnesses with their times, and before them the time that nobody proves. */
export function WitnessList({
  verification,
  parsed,
}: {
  verification: Verification;
  parsed: ParsedBundle | undefined;
}) {
  const { witnesses } = verification;
  const submittedAt = parsed?.submission.submittedAt;
  if (witnesses.length === 0) return <p class="empty">No witness could be read from the bundle.</p>;
  return (
    <ol class="witnesses">
      {submittedAt && (
        <li class="claimed">
          <StatusIcon status="not_checked" />
          <div>
            <h3>The service says that it was submitted</h3>
            <p>
              <Instant time={timestampDate(submittedAt)} />
            </p>
            <p class="quiet">By the service’s own clock; nothing proves it.</p>
          </div>
        </li>
      )}
      {[...witnesses].sort(byTime).map((witness) => (
        <WitnessItem key={`${witness.name} ${witness.treeSize}`} witness={witness} />
      ))}
    </ol>
  );
}

function byTime(a: WitnessFinding, b: WitnessFinding): number {
  return (a.time?.getTime() ?? 0) - (b.time?.getTime() ?? 0);
}

function WitnessItem({ witness }: { witness: WitnessFinding }) {
  const { status, name, kind, time, operator, treeSize, message } = witness;
  return (
    <li class={status}>
      <StatusIcon status={status} />
      <div>
        <h3>
          <bdi>{printable(name)}</bdi> <StatusWord status={status} />
        </h3>
        <p class="quiet">
          {kindText(kind)}, about the log of {treeSize.toLocaleString()}{' '}
          {treeSize === 1 ? 'entry' : 'entries'}
        </p>
        {status === 'passed' && time !== undefined && (
          <p class="shows">
            Vouches that it existed by <Instant time={time} />
          </p>
        )}
        {status === 'passed' && time === undefined && (
          <p class="shows">Signed the checkpoint, and states no time.</p>
        )}
        {status !== 'passed' && <p class="shows">{printable(message)}</p>}
        {operator === 'self' && (
          <p class="quiet">
            Run by the operator of this service: this is the operator’s own clock, nobody else’s.
          </p>
        )}
        {operator !== undefined && operator !== 'self' && operator !== '' && (
          <p class="quiet">
            Operated by <bdi>{printable(operator)}</bdi>
          </p>
        )}
      </div>
    </li>
  );
}
