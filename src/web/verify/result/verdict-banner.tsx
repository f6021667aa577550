import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { ComponentChildren } from 'preact';
import { printable } from '../../../protocol/printable.js';
import { Instant } from '../instant.tsx';
import { originText } from '../trust/trust-panel.tsx';
import { StatusIcon } from './status.tsx';
import { VERDICT_TEXTS } from './step-texts.js';
import type { Result } from './use-verification.js';

/** The verdict, the verifier's own sentence, and the facts; without a verified proof they are claims. */
export function VerdictBanner({ result, hasArtifact }: { result: Result; hasArtifact: boolean }) {
  const { verdict, summary } = result.verification;
  const { status, title } = VERDICT_TEXTS[verdict];
  return (
    <div class={`verdict ${status}`}>
      <StatusIcon status={status} size={56} />
      <div>
        <p class="headline">{title}</p>
        <p class="summary">{printable(summary)}</p>
        {verdict === 'could_not_check' && !hasArtifact && (
          <p class="hint">Give the file as well: only then is it known whether the proof is about it.</p>
        )}
        <Facts result={result} />
        <p class="quiet basis">
          <bdi>{result.bundle.name}</bdi>, checked against {originText(result.roots.origin)}.
        </p>
      </div>
    </div>
  );
}

function Facts({ result }: { result: Result }) {
  const { verdict, statement, existedBy } = result.verification;
  const { parsed } = result;
  if (statement === undefined) return null;
  const isProven = verdict === 'verified';
  const submittedAt = parsed?.submission.submittedAt;
  return (
    <>
      {!isProven && <p class="quiet">What the bundle says, none of it proven:</p>}
      <dl class="facts">
        {existedBy && (
          <Fact name="Existed no later than">
            <Instant time={existedBy} />
          </Fact>
        )}
        <Fact name="Submission">
          <code>{statement.submissionId}</code>
        </Fact>
        <Fact name="Attested by project">
          <code>{printable(statement.project)}</code>
        </Fact>
        <Fact name="Environment">{statement.environment}</Fact>
        <Fact name="SHA-256 of the file">
          <code class="hash">{statement.artifactSha256}</code>
        </Fact>
        {submittedAt && (
          <Fact name="Submitted, by the service’s own clock (not proven)">
            <Instant time={timestampDate(submittedAt)} />
          </Fact>
        )}
      </dl>
    </>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
