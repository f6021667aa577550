/** The state of a pending witness request, as a project and the operator see it in a batch. */
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { BatchService } from '../../../../gen/attestation/v1/batches_pb.js';
import { WitnessKind } from '../../../../gen/attestation/v1/bundle_pb.js';
import { startApp } from '../../../support/app.js';
import { adminOf } from '../../../support/calling/admin.js';
import { newBrowser } from '../../../support/calling/sessions.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { until } from '../../../support/until.js';
import { submit } from '../../rpc/submitting.js';

const app = await startApp(t);
const { getBatch } = BatchService.method;

type Batch = JsonObject & { id: string; witnesses: JsonObject[] };

t.test('a project sees the public state of a pending request, the operator all of it', async (t) => {
  const owner = await newKey(app);
  const operator = newBrowser(app, { 'attest-project': owner.projectId });
  await operator.signIn({ credential: { case: 'adminToken', value: adminOf(app).token } });
  const batches = async () => {
    const { json } = await app.rest('/v1/batches', { apiKey: owner.key });
    return json.data as Batch[];
  };
  app.witnesses[0]!.hold();
  await submit(app, owner);
  const [{ id }] = await until('it is published', async () => {
    const [found] = await batches();
    return found && ([found] as const);
  });
  const become = (kind: WitnessKind, detail: JsonObject) =>
    app.pool.begin(async (tx) => {
      await tx`
      UPDATE policy SET witnesses = (
        SELECT jsonb_agg(CASE WHEN w ->> 'name' = 'self-tsa' THEN w || ${tx.json({ kind })} ELSE w END)
        FROM jsonb_array_elements(witnesses) w)`;
      await tx`DELETE FROM witness_request`;
      await tx`
      INSERT INTO witness_request (log_id, witness, tree_size, state, detail, is_exclusive, next_poll_at)
      SELECT log_id, 'self-tsa', tree_size, '', ${tx.json(detail)}, false, 'infinity' FROM batch WHERE id = ${id}`;
    });
  const url = 'https://calendar.example.com';
  const secret = 'explorer.internal:8080 answered eth_call with: key s3cret is over its limit';
  const sent = {
    chain_id: 1,
    contract: '0xc0',
    method: 'anchor',
    account: '0xac',
    nonce: 3,
    transaction_hash: '0x7',
  };
  const calendars = [
    { url, status: 'failed', reason: secret },
    { url, status: 'pending', reason: secret },
  ];
  const shownCalendars = [
    { url, status: 'failed', reason: 'the request to the calendar failed' },
    { url, status: 'pending' },
  ];
  const waiting = (waits_on: string, waiting_for: string) => ({ waits_on, waiting_for });
  for (const [kind, detail, shown] of [
    [
      WitnessKind.OPENTIMESTAMPS,
      { status: 'pending', calendars, explorer: secret },
      { status: 'pending', calendars: shownCalendars },
    ],
    [
      WitnessKind.OPENTIMESTAMPS,
      { calendars: [secret, null, [secret]] },
      { status: 'pending', calendars: [] },
    ],
    [
      WitnessKind.EVM,
      { ...sent, rpc: secret, ...waiting('fees', secret) },
      {
        ...sent,
        ...waiting(
          'fees',
          'the transaction waits for lower fees of the chain, or for a higher limit of the operator',
        ),
      },
    ],
    [WitnessKind.EVM, { ...sent, waiting_for: secret }, sent],
    [WitnessKind.EVM, { ...sent, ...waiting('toString', secret) }, sent],
    [WitnessKind.RFC3161, { state: secret }, {}],
  ] as const) {
    await become(kind, JSON.parse(JSON.stringify(detail)) as JsonObject);
    const { json } = await app.rest(`/v1/batches/${id}`, { apiKey: owner.key });
    const [, witness] = (json as Batch).witnesses;
    t.same(witness?.detail, shown);
    t.match(witness, { status: 'pending', covers_tree_size: (json as Batch).tree_size });
    const [listed] = await batches();
    t.same(listed?.witnesses[1]?.detail, shown, 'in the list as well');
    const { response } = await operator.call(getBatch, { id });
    t.same((response.witnesses as JsonObject[])[1]?.detail, detail);
  }
  await become(WitnessKind.RFC3161, {});
  await app.pool`DELETE FROM witness_request`;
  app.witnesses[0]!.release();
  await app.drain();
  t.match(await batches(), [{ id, status: 'witnessed' }]);
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
