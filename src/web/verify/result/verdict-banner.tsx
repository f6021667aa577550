import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { ComponentChildren } from 'preact';
import { notBeforeText } from '../../../proof/set/head.js';
import { printablePath } from '../../../proof/set/path.js';
import { type PublicStatement, subjectsOf } from '../../../proof/statement/public-statement.js';
import { isPublic } from '../../../proof/statement/statement.js';
import { printable } from '../../../protocol/printable.js';
import type { Inputs } from '../inputs/use-inputs.js';
import { Instant } from '../instant.tsx';
import { originText } from '../trust/trust-panel.tsx';
import { StatusIcon } from './status.tsx';
import { areOfSet, VERDICT_TEXTS } from './step-texts.js';
import type { Result } from './use-verification.js';

/** The verdict, the verifier's own sentence, and the facts; without a verified proof they are claims. */
export function VerdictBanner({ result, inputs }: { result: Result; inputs: Inputs }) {
  const { verdict, summary, set } = result.verification;
  const hint = verdict === 'could_not_check' ? hintOf(inputs) : undefined;
  const notBefore = verdict === 'verified' ? set?.head.notBefore : undefined;
  const { status, title } = VERDICT_TEXTS[verdict];
  return (
    <div class={`verdict ${status}`}>
      <StatusIcon status={status} size={56} />
      <div>
        <p class="headline">{title}</p>
        <p class="summary">{printable(summary)}</p>
        {notBefore && <p class="not-before">{notBeforeText(notBefore)}</p>}
        {hint && <p class="hint">{hint}</p>}
        <Facts result={result} />
        <p class="quiet basis">
          <bdi>{result.bundle.name}</bdi>, checked against {originText(result.roots.origin)}.
        </p>
      </div>
    </div>
  );
}

/** What is still to be given. */
function hintOf({ artifact, set }: Inputs): string | undefined {
  if (artifact.state === 'ready') {
    const lacksSet = 'files' in artifact.value && set.state !== 'ready';
    return lacksSet ? 'Give the set file as well: the files of a folder are compared with it.' : undefined;
  }
  return set.state === 'ready'
    ? 'Give the folder as well, or a file of it.'
    : 'Give the file as well: only then is it known whether the proof is about it.';
}

function Facts({ result }: { result: Result }) {
  const { verdict, statement, existedBy, set, steps } = result.verification;
  const isOfSet = steps.some(({ checks }) => areOfSet(checks));
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
        {statement.identity && (
          <Fact name="Submitted by">
            <code>{printable(statement.identity.subject)}</code> of{' '}
            <code>{printable(statement.identity.issuer)}</code>
          </Fact>
        )}
        <Fact name="Environment">{statement.environment}</Fact>
        {set?.member && (
          <Fact name="Path in the set">
            <code class="hash">{printablePath(set.member.entry.path)}</code>
          </Fact>
        )}
        <Fact name={isOfSet ? 'SHA-256 of the head of the set' : 'SHA-256 of the file'}>
          <code class="hash">{statement.artifactSha256}</code>
        </Fact>
        {statement.artifactName && (
          <Fact name="Name of the artifact">
            <code class="hash">{printable(statement.artifactName)}</code>
          </Fact>
        )}
        {isPublic(statement) && <Stated statement={statement} />}
        {submittedAt && (
          <Fact name="Submitted, by the service’s own clock (not proven)">
            <Instant time={timestampDate(submittedAt)} />
          </Fact>
        )}
      </dl>
    </>
  );
}

/** The predicate and the further subjects of a public statement. */
function Stated({ statement }: { statement: PublicStatement }) {
  const subjects = subjectsOf(statement);
  return (
    <>
      <Fact name="States">
        <code class="hash">{printable(statement.predicateType)}</code>
        <details>
          <summary>Predicate</summary>
          <pre>{predicateLines(statement).join('\n')}</pre>
        </details>
      </Fact>
      {subjects.length > 1 && (
        <Fact name="Subjects">
          <details>
            <summary>{subjects.length.toLocaleString()} files</summary>
            <ul class="plain">
              {subjects.map(({ name, sha256 }, i) => (
                <li key={i}>
                  {name !== undefined && <>{printable(name)} </>}
                  <code class="hash">{sha256}</code>
                </li>
              ))}
            </ul>
          </details>
        </Fact>
      )}
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

function predicateLines({ predicate }: PublicStatement): string[] {
  return JSON.stringify(predicate, null, 2).split('\n').map(printable);
}
