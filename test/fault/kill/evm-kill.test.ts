/** SIGKILL of a worker at each step of a transaction: nothing is lost, and nothing is paid for twice. */
import { randomBytes } from 'node:crypto';
import t from 'tap';
import { evmPrivateKey } from '../../../src/config/witnesses/evm.js';
import { evmAccount } from '../../../src/server/witnessing/clients/evm/account.js';
import type { Break } from '../../support/breaking/proxy.js';
import { commitOf, statement } from '../../support/breaking/statement-matchers.js';
import { acknowledgement, newCreation, send } from '../../support/calling/load.js';
import { setScene } from '../../support/fault-fixture.js';
import { type Acknowledged, assertConsistent } from '../../support/judging/consistent.js';
import { someOf } from '../../support/long.js';
import { letLeasesRunOut, untilGone, untilWitnessed, WORKERS } from '../../support/wait-for-idle.js';
import { startAnvil } from '../../support/witnesses/evm/anvil.js';
import { deployAnchor } from '../../support/witnesses/evm/contracts.js';
import { startRpcProxy } from '../../support/witnesses/evm/rpc-proxy.js';
import { ETHER } from '../../support/witnesses/evm/scene.js';

const KEY = randomBytes(32).toString('hex');
const { address } = evmAccount(evmPrivateKey.parse(KEY));

const anvil = await startAnvil(t);
const contract = await deployAnchor(anvil);
await anvil.setBalance(address, ETHER);
await anvil.rpc('evm_setAutomine', [true]);
const node = await startRpcProxy(t, anvil.url);
const witness = {
  name: 'chain',
  kind: 'evm',
  rpc_url: node.url,
  chain_id: anvil.chainId,
  contract,
  confirmations: 1,
  max_fee_gwei: 50,
  required: true,
  every: '1s',
};
const scene = await setScene(t, { env: { WITNESSES: JSON.stringify([witness]), EVM_PRIVATE_KEY: KEY } });
const { installation, pool, servers, apiKey } = scene;
const { proxy } = servers.postgres;
const acknowledged: Acknowledged[] = [];
const verified = new Set<string>();
const sources = { evmRpc: () => anvil.rpc };
const api = await installation.startApi();

const BEFORE: Break = 'before the request arrives';
const AFTER: Break = 'before the answer arrives';
const POINTS: [what: string, when: Break, hold: () => Promise<unknown>][] = [
  ['the transaction is sent', AFTER, () => node.holdNext(AFTER, 'eth_sendRawTransaction')],
  ['the transaction is stored', AFTER, () => proxy.holdNext(AFTER, commitOf('INSERT INTO witness_request'))],
  [
    'the transaction is stored',
    BEFORE,
    () => proxy.holdNext(BEFORE, commitOf('INSERT INTO witness_request')),
  ],
  ['it has asked for the nonce', AFTER, () => node.holdNext(AFTER, 'eth_getTransactionCount')],
  ['the transaction is sent', BEFORE, () => node.holdNext(BEFORE, 'eth_sendRawTransaction')],
  [
    'it is noted that it was sent',
    BEFORE,
    () => proxy.holdNext(BEFORE, statement('failures = 0, last_error = NULL, leased_until = NULL')),
  ],
  ['evidence is committed', BEFORE, () => proxy.holdNext(BEFORE, statement('INSERT INTO evidence'))],
  ['evidence is committed', AFTER, () => proxy.holdNext(AFTER, statement('INSERT INTO evidence'))],
];

for (const [what, when, hold] of someOf(POINTS, 2)) {
  t.test(`the next worker completes the job of one killed while ${what}, ${when}`, async (t) => {
    const creation = newCreation();
    acknowledged.push(acknowledgement(creation, await send(api.baseUrl, apiKey, creation)));
    const held = hold();
    const doomed = await installation.startWorker();
    await held;
    await doomed.kill();
    await untilGone(pool, WORKERS);
    await servers.nats.forget();
    const next = await installation.startWorker();
    await letLeasesRunOut(pool);
    await untilWitnessed(pool);
    await next.stop();
    await assertConsistent(t, { pool, acknowledged, register: installation.register, verified, sources });
    const sent = Number(await anvil.rpc('eth_getTransactionCount', [address, 'latest']));
    const pieces = await pool`SELECT DISTINCT evidence FROM evidence WHERE witness = 'chain'`;
    t.equal(sent, pieces.length, 'each transaction is evidence');
  });
}
