import { Code } from '@connectrpc/connect';
import t, { type Test } from 'tap';
import { AttestationService, SubmissionStatus } from '../../gen/attestation/v1/attestations_pb.js';
import type { AttestationError } from '../../src/client/client.js';
import { serveRpc, serviceError } from '../support/servers/rpc-server.js';
import { clientOf } from './clients.js';

/** A server that shows these statuses in turn, the last one for ever; an error in place of one is thrown. */
async function showing(t: Test, ...statuses: (SubmissionStatus | Error)[]) {
  const { baseUrl, requests } = await serveRpc(t, ({ service }) => {
    service(AttestationService, {
      getAttestation: ({ id }) => {
        const status = statuses.length > 1 ? statuses.shift()! : statuses[0]!;
        if (status instanceof Error) throw status;
        return { id, status };
      },
    });
  });
  const told: string[] = [];
  const onRetry = ({ code }: AttestationError, delayMs: number) => void told.push(`${code} ${delayMs}`);
  return { ...clientOf(baseUrl, { onRetry }), requests, told };
}

t.test('waiting looks again with growing pauses until the submission is witnessed', async (t) => {
  const { QUEUED, WITNESSED } = SubmissionStatus;
  const { client, pauses } = await showing(t, QUEUED, QUEUED, QUEUED, WITNESSED);
  const seen: SubmissionStatus[] = [];
  const onProgress = ({ status }: { status: SubmissionStatus }) => void seen.push(status);
  const submission = await client.attestations.waitUntilWitnessed('sub_1', { onProgress });
  t.equal(submission.status, WITNESSED);
  t.same(seen, [QUEUED, QUEUED, QUEUED, WITNESSED]);
  t.same(pauses, [250, 375, 562.5]);
});

t.test('waiting outlasts an outage and honours its Retry-After', async (t) => {
  const outage = serviceError('service.unavailable', Code.Unavailable, { 'retry-after': '20' });
  const { client, pauses, told } = await showing(t, outage, SubmissionStatus.WITNESSED);
  await client.attestations.waitUntilWitnessed('sub_1');
  t.same(pauses, [20_000]);
  t.same(told, ['service.unavailable 20000']);
});

t.test('no poll lasts longer than the rest of the timeout', async (t) => {
  const { client, requests } = await showing(t, SubmissionStatus.QUEUED);
  const waiting = client.attestations.waitUntilWitnessed('sub_1', { timeoutMs: 1_000 });
  await t.rejects(waiting, { code: 'wait.timeout' });
  t.same(
    requests.map(({ headers }) => headers['connect-timeout-ms']),
    ['1000', '750', '375'],
  );
});

t.test('waiting ends with a reason when no status can follow', async (t) => {
  const { QUEUED, PARTIAL, FAILED } = SubmissionStatus;
  for (const [status, code] of [
    [PARTIAL, 'wait.partial'],
    [FAILED, 'wait.failed'],
    [QUEUED, 'wait.timeout'],
    [serviceError('submission.not_found', Code.NotFound), 'submission.not_found'],
    [serviceError('service.unavailable'), 'wait.timeout'],
  ] as const) {
    const { client, pauses } = await showing(t, status);
    await t.rejects(client.attestations.waitUntilWitnessed('sub_1', { timeoutMs: 30_000 }), { code }, code);
    t.ok(pauses.reduce((sum, ms) => sum + ms, 0) <= 30_000, 'not beyond its timeout');
  }
  const signal = AbortSignal.abort(new Error('enough'));
  const { client } = await showing(t, QUEUED);
  await t.rejects(client.attestations.waitUntilWitnessed('sub_1', { signal }), { message: 'enough' });
});
