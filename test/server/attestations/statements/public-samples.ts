/** Requests of public statements. */
import { randomBytes } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import { StatementForm } from '../../../../gen/attestation/v1/attestations_pb.js';
import { CANARY } from '../../../support/judging/recorder.js';

/** A random SHA-256. */
export const digest = () => randomBytes(32).toString('hex');

/** A test result, whose predicate leaves a trace. */
export const RESULT = {
  schema: 'intoto.test_result.v0.1',
  result: 'PASSED',
  configuration: [{ name: `suite ${CANARY}`, uri: 'https://example.com/suite' }],
};

const { schema, ...predicate } = RESULT;
/** The predicate of a statement with {@link RESULT}. */
export const PREDICATE: JsonObject = predicate;
export const PREDICATE_TYPE = 'https://in-toto.io/attestation/test-result/v0.1';

/** A creation with a public statement. */
export function publicCreation(sha256 = digest(), subjects: { name?: string; sha256: string }[] = []) {
  return { artifact: { sha256 }, metadata: RESULT, statement: StatementForm.PUBLIC, subjects };
}

/** The statement of a bundle. */
export function statementOf(bundle: JsonObject): JsonObject {
  const { sigstore_bundle } = bundle as { sigstore_bundle: { dsseEnvelope: { payload: string } } };
  return JSON.parse(Buffer.from(sigstore_bundle.dsseEnvelope.payload, 'base64').toString());
}
