/** Bundles of public statements with an identity, out of one batch, and their verification under their service's trust roots. */
import { randomBytes } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import { ProofBundleSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { fromBase64, toBase64, toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { type PublicStatement, publicStatementText } from '../../../src/proof/statement/public-statement.js';
import { requestTimestamp } from '../../../src/server/witnessing/clients/rfc3161.js';
import { restJson } from '../rest-json.js';
import { ARTIFACT, LOG_INDEX, PROJECT, type Service, SUBMISSION_ID, SUBMITTED_AT } from '../sample.js';
import { makeSamples, type Subject } from '../sample-bundles.js';
import { type Bundle, service } from '../verifying.js';

/** The artifact of the other submission. */
export const OTHER_ARTIFACT = utf8('the artifact of another project');
/** A further subject of the submission. */
export const SECOND_ARTIFACT = utf8('a second file of the build');

const ISSUER = 'https://token.actions.githubusercontent.com';

/** What the statement says; the service and the submission add the rest. */
export const STATED = {
  artifactName: 'dist/app.tar',
  identity: {
    issuer: ISSUER,
    subject: 'repo:acme/app:ref:refs/heads/main',
    claims: { repository: 'acme/app', sha: 'c0ffee' },
  },
  otherSubjects: [{ name: 'dist/app.sbom', sha256: toHex(sha256(SECOND_ARTIFACT)) }],
  predicateType: 'https://in-toto.io/attestation/test-result/v0.1',
  predicate: { result: 'FAILED', configuration: [{ name: 'unit', uri: 'https://ci.example/unit' }] },
} satisfies Partial<PublicStatement>;

const OTHER_STATED = {
  artifactName: 'other.tar',
  identity: {
    issuer: ISSUER,
    subject: 'repo:evil/fork:ref:refs/heads/main',
    claims: { repository: 'evil/fork' },
  },
  otherSubjects: [],
  predicateType: STATED.predicateType,
  predicate: { result: 'PASSED', configuration: [{ name: 'unit', uri: 'https://evil.example/unit' }] },
} satisfies Partial<PublicStatement>;

const SUBJECTS: readonly Subject[] = [
  { artifact: ARTIFACT, submissionId: SUBMISSION_ID, project: PROJECT, logIndex: LOG_INDEX },
  {
    artifact: OTHER_ARTIFACT,
    submissionId: 'sub_01JX5WQ3ZZZZZZZZZZZZZZZZZ0',
    project: 'prj_01JX5WQ0ZZZZZZZZZZZZZZZZZ0',
    logIndex: LOG_INDEX + 1,
  },
];

/** The submission's bundle, and that of another project beside it, each with a stamp over its signature. */
export async function makePublic(by: Service): Promise<{ mine: Bundle; theirs: Bundle }> {
  const samples = await makeSamples({ ...by, form: { payload: publicText } }, SUBJECTS);
  const [mine, theirs] = samples.map(
    ({ bundle }) => restJson(ProofBundleSchema, bundle) as unknown as Bundle,
  );
  for (const bundle of [mine!, theirs!]) await stamp(bundle, by);
  return { mine: mine!, theirs: theirs! };
}

/** The public statement of the submission of a private one. */
function publicText(text: string): string {
  const { subject, predicate } = JSON.parse(text);
  const isOther = predicate.submission_id !== SUBMISSION_ID;
  return publicStatementText({
    artifactSha256: subject[0].digest.sha256,
    submissionId: predicate.submission_id,
    project: predicate.project,
    submittedAt: SUBMITTED_AT,
    environment: predicate.environment,
    ...(isOther ? OTHER_STATED : STATED),
  });
}

/** Adds a time stamp over the signature by a service's authority. */
async function stamp(bundle: Bundle, { authority }: Service): Promise<void> {
  const { dsseEnvelope, verificationMaterial } = bundle.sigstore_bundle;
  const { evidence } = await requestTimestamp(
    { send: (request) => authority.respond(request) },
    {
      message: fromBase64(dsseEnvelope.signatures[0]!.sig),
      nonce: new Uint8Array(randomBytes(8)),
      chains: [authority.certChain],
    },
    new AbortController().signal,
  );
  const rfc3161Timestamps = [{ signedTimestamp: toBase64(evidence) }];
  Object.assign(verificationMaterial, { timestampVerificationData: { rfc3161Timestamps } });
}

const made = await makePublic(service);
export const mine = made.mine as unknown as JsonObject;
export const theirs = made.theirs;
