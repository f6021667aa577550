import { StatementForm, type Submission } from '../../../../gen/attestation/v1/attestations_pb.js';
import { safe, safeJson } from '../ui/safe.js';
import { Time } from '../ui/time.js';

/** What was attested: the artifact, what its signed statement says beside the metadata, and its place in the log. */
export function Facts({ submission }: { submission: Submission }) {
  const { artifact, leafSha256, logIndex, batchId, build, submittedAt, witnessedAt } = submission;
  return (
    <dl>
      {artifact?.name === undefined ? null : (
        <>
          <dt>Name</dt>
          <dd>{safe(artifact.name)}</dd>
        </>
      )}
      <dt>SHA-256</dt>
      <dd>
        <code>{artifact?.sha256}</code>
      </dd>
      <Statement submission={submission} />
      <dt>Leaf hash</dt>
      <dd>
        <code>{leafSha256}</code>
      </dd>
      <dt>Log index</dt>
      <dd>{logIndex.toLocaleString()}</dd>
      <dt>Batch</dt>
      <dd>{batchId === undefined ? 'not sealed yet' : <code>{batchId}</code>}</dd>
      {build === undefined ? null : (
        <>
          <dt>Build</dt>
          <dd>{safe(build)}</dd>
        </>
      )}
      <dt>Submitted</dt>
      <dd>
        <Time at={submittedAt} />
      </dd>
      <dt>Witnessed</dt>
      <dd>
        <Time at={witnessedAt} none="not yet" />
      </dd>
    </dl>
  );
}

/** Whether a submission's signed statement is public. */
export function isPublic({ statement }: Submission): boolean {
  return statement === StatementForm.PUBLIC;
}

/** Of a private statement without an identity nothing. */
function Statement({ submission }: { submission: Submission }) {
  const { subjects, identity, statementErasedAt } = submission;
  return (
    <>
      {isPublic(submission) || statementErasedAt !== undefined ? (
        <>
          <dt>Signed statement</dt>
          <dd>
            {isPublic(submission) ? 'public: all who have the bundle read it' : 'private'}
            {statementErasedAt === undefined ? null : (
              <>
                , erased <Time at={statementErasedAt} />
              </>
            )}
          </dd>
        </>
      ) : null}
      {subjects.length === 0 ? null : (
        <>
          <dt>Further files</dt>
          <dd>
            <details>
              <summary>{subjects.length.toLocaleString()} subjects</summary>
              <ul>
                {subjects.map(({ name = '', sha256 }) => (
                  <li key={`${name} ${sha256}`}>
                    {safe(name)} <code>{sha256}</code>
                  </li>
                ))}
              </ul>
            </details>
          </dd>
        </>
      )}
      {identity === undefined ? null : (
        <>
          <dt>Submitted by</dt>
          <dd>
            {safe(identity.subject)} of {safe(identity.issuer)}
            <pre>{safeJson(identity.claims)}</pre>
          </dd>
        </>
      )}
    </>
  );
}
