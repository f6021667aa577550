/** The service with an EVM witness: from the submission to the verified bundle. */
import { randomBytes } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { WitnessService } from '../../../gen/attestation/admin/v1/witnesses_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { readConfig } from '../../../src/config/config.js';
import { verifyBundle } from '../../../src/proof/verify/verify.js';
import { evmAccount } from '../../../src/server/witnessing/clients/evm/account.js';
import { startApp } from '../../support/app.js';
import { adminOf } from '../../support/calling/admin.js';
import { newKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { until } from '../../support/until.js';
import { startAnvil } from '../../support/witnesses/evm/anvil.js';
import { deployAnchor } from '../../support/witnesses/evm/contracts.js';
import { ETHER } from '../../support/witnesses/evm/scene.js';
import { submit } from '../rpc/submitting.js';

const KEY = randomBytes(32).toString('hex');
const API_KEY = 'rpc-key-0123456789abcdef';

const anvil = await startAnvil(t);
const contract = await deployAnchor(anvil);
const path = join(t.testdir({}), 'evm.key');
writeFileSync(path, KEY);
chmodSync(path, 0o600);
const WITNESSES = JSON.stringify([
  {
    name: 'chain',
    kind: 'evm',
    rpc_url: `${anvil.url}/?key=${API_KEY}`,
    chain_id: anvil.chainId,
    contract,
    key_file: path,
    confirmations: 2,
    max_fee_gwei: 50,
    required: true,
    every: '1s',
  },
]);
const app = await startApp(t, { env: { WITNESSES } });
for (const secret of [KEY, API_KEY]) app.recorder.secrets.add(secret);
const owner = await newKey(app);
const tester = await newKey(app, { environment: Environment.TEST });
const [config] = readConfig({ WITNESSES }, { process: 'up' }).witnesses;
if (config === undefined || !('privateKey' in config)) throw new Error('no EVM witness is configured');
const { address } = evmAccount(config.privateKey);

/** What the batch of a submission shows of the EVM witness. */
async function shown(batchId: string, { key: apiKey } = owner): Promise<JsonObject | undefined> {
  const { json } = await app.rest(`/v1/batches/${batchId}`, { apiKey });
  return (json.witnesses as JsonObject[]).find(({ name }) => name === 'chain');
}

/** Makes blocks until the evidence of a batch lands. */
async function untilLanded(batchId: string, of = owner): Promise<JsonObject> {
  return until('the evidence lands', async () => {
    await anvil.mine();
    const witness = await shown(batchId, of);
    return witness?.status === 'landed' ? witness : undefined;
  });
}

async function batchOf(id: string, { key: apiKey } = owner): Promise<string> {
  return until('the submission is in a batch', async () => {
    const { json } = await app.rest(`/v1/attestations/${id}`, { apiKey });
    return json.batch_id ? String(json.batch_id) : undefined;
  });
}

t.test(
  'an account without funds is reported with the required amount, then the checkpoint is mined despite a restart',
  async (t) => {
    const [config] = readConfig({ WITNESSES }, { process: 'up' }).witnesses;
    if (config === undefined || !('privateKey' in config)) return t.fail('no EVM witness is configured');
    const { address } = evmAccount(config.privateKey);
    const { id, artifactSha256 } = await submit(app, owner);
    const batchId = await batchOf(id);
    const poor = await until('the witness has failed', async () => {
      const witness = await shown(batchId);
      return witness?.last_error ? witness : undefined;
    });
    t.equal(poor.last_error, 'the request to the witness failed', 'tenants see no more');
    const { data } = await adminOf(app).ask(WitnessService.method.listWitnesses, {});
    const standing = (data as JsonObject[]).find(
      ({ name, environment }) => name === 'chain' && environment === 'ENVIRONMENT_LIVE',
    );
    t.match(standing?.lastError, new RegExp(`^account ${address} on chain 31337 has 0 and needs`));
    await anvil.setBalance(address, ETHER);
    const pending = await until('the transaction is pending', async () => {
      const witness = await shown(batchId);
      return Object(witness?.detail).waiting_for ? witness : undefined;
    });
    t.match(pending, {
      status: 'pending',
      detail: { contract, account: address, waiting_for: /to be executed/ },
    });
    await app.changeWitnesses(['self-tsa']);
    const landed = await untilLanded(batchId);
    t.match(landed.detail, { chain_id: 31_337, contract, method: 'anchor', block_time: /Z$/ });
    const { json: bundle } = await until('the bundle is there', async () => {
      const answer = await app.rest(`/v1/attestations/${id}/bundle.json`, { apiKey: owner.key });
      return answer.status === 200 ? answer : undefined;
    });
    const { json: trustRoots } = await app.rest('/verify/trust_roots.json');
    t.match(trustRoots.evm_contracts, [
      { name: 'chain', address: contract, method: 'anchor', confirmations: 2 },
    ]);
    const options = { trustRoots, artifactSha256, now: new Date() };
    const report = await verifyBundle(bundle, { ...options, evmRpc: () => anvil.rpc });
    t.match(report, { verdict: 'verified' });
    t.match((await verifyBundle(bundle, options)).verdict, 'could_not_check', 'without the chain');
    assertNoLeaks(t, app.recorder);
  },
);

t.test(
  'both logs are recorded by one account, and each piece of evidence costs one transaction',
  async (t) => {
    const made = await Promise.all(
      [owner, tester].map(async (key) => ({ key, ...(await submit(app, key)) })),
    );
    for (const { key, id } of made) await untilLanded(await batchOf(id, key), key);
    const sent = Number(await anvil.rpc('eth_getTransactionCount', [address, 'latest']));
    const rows = await app.pool`SELECT DISTINCT evidence FROM evidence WHERE witness = 'chain'`;
    t.equal(sent, rows.length);
    t.ok(sent >= 3, `${sent} transactions`);
  },
);
