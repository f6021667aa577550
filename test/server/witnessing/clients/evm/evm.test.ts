import { readFileSync } from 'node:fs';
import t from 'tap';
import { sha256 } from '../../../../../src/proof/bytes/primitives.js';
import { checkOnChain } from '../../../../../src/proof/evm/check.js';
import { decodeEvmEvidence } from '../../../../../src/proof/evm/evidence.js';
import {
  ask,
  checkpointOf,
  countTransactions,
  evmScene,
  type Pending,
  poll,
  pollPending,
  pollUntilLanded,
} from '../../../../support/witnesses/evm/scene.js';

t.test('a checkpoint is recorded, and lands after its confirmations', async (t) => {
  const scene = await evmScene(t);
  const { anvil, account, contract } = scene;
  const witness = scene.witness();
  const asked = await ask(witness);
  t.match(asked, {
    pollAfterMs: 0,
    detail: { method: 'anchor', contract, account: account.address, nonce: 0 },
  });
  const sent = await pollPending(witness, asked);
  t.match(sent.detail.waiting_for, /to be executed/);
  await anvil.mine();
  const executed = await pollPending(witness, sent);
  t.match(executed.detail.waiting_for, 'the event has 1 of 2 blocks');
  await anvil.mine();
  const landed = await pollUntilLanded(anvil, witness, executed);
  const evidence = decodeEvmEvidence(landed.evidence);
  t.match(evidence, {
    chainId: anvil.chainId,
    contract,
    transactionHash: asked.detail.transaction_hash,
  });
  t.strictSame(evidence.digest, sha256(checkpointOf(1).body));
  t.strictSame(await checkOnChain(anvil.rpc, evidence, 2), { type: 'confirmed' });
  t.match(landed.detail, {
    chain_id: anvil.chainId,
    block_number: evidence.blockNumber,
    block_time: /^20.*Z$/,
  });
  t.equal(await countTransactions(scene), 1);
});

t.test('a call of the anchoring contract uses the gas that docs/witnesses.md says', async (t) => {
  const scene = await evmScene(t);
  const { detail } = await pollUntilLanded(scene.anvil, scene.witness(), await ask(scene.witness()));
  const receipt = await scene.anvil.rpc('eth_getTransactionReceipt', [detail.transaction_hash]);
  const [, gas = ''] =
    /A call of `anchor` uses ([\d,]+) gas/.exec(readFileSync('docs/witnesses.md', 'utf8')) ?? [];
  const said = Number(gas.replace(',', ''));
  // A digest with zero bytes costs 12 gas less for each.
  t.ok(Math.abs(Number(Object(receipt).gasUsed) - said) <= 12 * 4, `${Object(receipt).gasUsed} of ${said}`);
});

t.test('nothing is sent before the signed transaction is stored', async (t) => {
  const scene = await evmScene(t);
  const { anvil } = scene;
  const witness = scene.witness();
  await ask(witness);
  await anvil.mine(3);
  t.equal(await countTransactions(scene), 0, 'asked, and killed before the answer was stored');
  const asked = await ask(witness, checkpointOf(2));
  t.equal(asked.detail.nonce, 0, 'the next request has the nonce that was not used');
});

t.test('a crash at any point pays for one transaction', async (t) => {
  const scene = await evmScene(t);
  const { anvil } = scene;
  const witness = scene.witness();
  const asked = await ask(witness);
  const states: Pending[] = [asked];
  for (const _ of [1, 2, 3]) {
    states.push(await pollPending(witness, states.at(-1)!));
    for (const state of states) await pollPending(witness, state);
    if (states.length === 3) await anvil.mine();
  }
  await anvil.mine();
  const landed = await Promise.all(states.map((state) => poll(witness, state)));
  for (const answer of landed) t.strictSame(answer, landed[0], 'every earlier state leads to one result');
  t.equal(landed[0]?.type, 'landed');
  await anvil.mine(3);
  t.equal(await countTransactions(scene), 1);
});

t.test('two logs share an account, one request after the other', async (t) => {
  const scene = await evmScene(t);
  const witness = scene.witness();
  t.equal(witness.oneAtATime, true);
  for (const [nonce, origin] of ['live.log.example', 'test.log.example'].entries()) {
    const checkpoint = checkpointOf(1, origin);
    const asked = await ask(witness, checkpoint);
    t.equal(asked.detail.nonce, nonce);
    const { evidence } = await pollUntilLanded(scene.anvil, witness, asked, checkpoint);
    t.strictSame(decodeEvmEvidence(evidence).digest, sha256(checkpoint.body));
  }
});
