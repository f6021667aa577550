/** Every RPC while the synchronous standby does not answer: those that only read are served, the others refused with the reason. */
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { AttestationService } from '../../../gen/attestation/v1/attestations_pb.js';
import {
  type Known,
  METADATA,
  makeChangeable,
  makeExports,
  makeWebhooks,
  NOTHING,
  sampleOf,
} from '../../server/rpc/samples.js';
import { submitWitnessed } from '../../server/rpc/submitting.js';
import { startApp } from '../../support/app.js';
import { keyedMethods, rpcName } from '../../support/calling/rpcs.js';
import { newKey } from '../../support/calling/test-keys.js';
import { startStandbyPair } from '../../support/standby/standby-pair.js';
import { until } from '../../support/until.js';

const SAYS_SO = /the database's synchronous standby does not answer/;

t.test('what reads is served, and what writes is rejected', async (t) => {
  const pair = await startStandbyPair(t);
  const app = await startApp(t, { databaseUrl: pair.url });
  const [rest] = app.surfaces();
  if (rest === undefined) throw new Error('there is no surface');
  const owner = await newKey(app);
  const { id, artifactSha256 } = await submitWitnessed(app, owner);
  const { json } = await app.rest(`/v1/attestations/${id}`, { apiKey: owner.key });
  const known: Known = {
    ...NOTHING,
    artifactSha256,
    submissionId: id,
    batchId: String(json.batch_id),
    ...(await makeChangeable(rest, owner.key)),
    ...(await makeWebhooks(rest, owner.key)),
    ...(await makeExports(t, rest, owner.key)),
  };
  await app.drain();
  pair.takeStandbyAway();
  // On a busy machine a write may be given up before anybody knows why.
  await until('the reason is known', async () => {
    const { message } = await rest.call(
      AttestationService.method.createAttestation,
      { artifact: { sha256: artifactSha256 }, metadata: METADATA },
      owner.key,
    );
    return SAYS_SO.test(message);
  });
  const calls = (await keyedMethods()).map(async (method) => {
    const outcome = await rest.call(method, sampleOf(method, known) as never, owner.key);
    return { method, outcome };
  });
  for (const { method, outcome } of await Promise.all(calls)) {
    const what = `${rpcName(method)}: ${outcome.message}`;
    const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
    // Each item of a batch has an outcome of its own.
    const isBatch = method.name === AttestationService.method.batchCreateAttestations.name;
    t.equal(outcome.code, isRead || isBatch ? 'ok' : 'service.unavailable', what);
    if (!isRead) t.match(isBatch ? JSON.stringify(outcome.response) : outcome.message, SAYS_SO, what);
  }
});
