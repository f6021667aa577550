import type { DescMethodUnary, JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { utf8 } from '../../../../src/proof/bytes/encoding.js';
import { createLineVerifier } from '../../../../src/proof/export/verify-line.js';
import { startApp } from '../../../support/app.js';
import { newKey, type TestKey } from '../../../support/calling/test-keys.js';
import { invalidCreation, METADATA } from '../../rpc/samples.js';
import { submit } from '../../rpc/submitting.js';

const app = await startApp(t);
const [rest] = app.surfaces();
const { createAttestation, updateAttestation, deleteAttestation } = AttestationService.method;

/** A submission as the API answers it, as a line of an export has it. */
async function lineOf(id: string, { key }: TestKey): Promise<{ submission: JsonObject; bundle: JsonObject }> {
  const { json } = await app.rest(`/v1/attestations/${id}`, { apiKey: key });
  const { bundle, ...submission } = json;
  return { submission, bundle: bundle as JsonObject };
}

for (const environment of ['live', 'test'] as const) {
  t.test(`the API's response for a ${environment} submission verifies as an exported line`, async (t) => {
    const owner = await newKey(app, {
      environment: environment === 'live' ? Environment.LIVE : Environment.TEST,
    });
    const call = async (method: DescMethodUnary, request: JsonObject) => {
      const { code, response } = await rest!.call(method, request, owner.key);
      if (code !== 'ok') throw new Error(`refused: ${code}`);
      return String(response.id);
    };
    const valid = (await submit(app, owner)).id;
    const invalid = await call(createAttestation, invalidCreation('ab'.repeat(32)));
    const corrected = await call(createAttestation, invalidCreation('cd'.repeat(32)));
    await call(updateAttestation, { id: corrected, metadata: METADATA });
    const redacted = await call(createAttestation, invalidCreation('ef'.repeat(32)));
    await call(updateAttestation, { id: redacted, metadata: METADATA });
    const before = await lineOf(redacted, owner);
    await call(deleteAttestation, { id: redacted });
    await app.drain();
    const trustRoots = (await app.rest('/verify/trust_roots.json')).json;
    const verify = createLineVerifier({ trustRoots, environment, project: owner.projectId, now: new Date() });
    for (const [what, id] of Object.entries({ valid, invalid, corrected, redacted })) {
      const line = await lineOf(id, owner);
      t.match(await verify(utf8(JSON.stringify(line))), { verdict: 'verified', reason: '' }, what);
      t.match(line.submission, { metadata_state: what === 'corrected' ? 'valid' : what });
    }
    const now = await lineOf(redacted, owner);
    const { metadata, attested_metadata, metadata_salt } = before.submission;
    for (const members of [{ metadata }, { attested_metadata }, { metadata_salt }]) {
      const kept = { ...now, submission: { ...now.submission, ...members } };
      t.match(
        await verify(utf8(JSON.stringify(kept))),
        { verdict: 'not_verified' },
        Object.keys(members).join(),
      );
    }
  });
}
