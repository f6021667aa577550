/** What chains and accounts do to pending transactions. */
import t, { type Test } from 'tap';
import { decodeEvmEvidence } from '../../../../../src/proof/evm/evidence.js';
import type { JsonRpc } from '../../../../../src/proof/evm/json-rpc.js';
import { JsonRpcError } from '../../../../../src/server/witnessing/clients/evm/json-rpc.js';
import { signNext } from '../../../../../src/server/witnessing/clients/evm/prepare.js';
import type { Anvil } from '../../../../support/witnesses/evm/anvil.js';
import { deployWrong } from '../../../../support/witnesses/evm/contracts.js';
import {
  ask,
  checkpointOf,
  countTransactions,
  ETHER,
  evmScene,
  GWEI,
  poll,
  pollPending,
  pollUntilLanded,
} from '../../../../support/witnesses/evm/scene.js';

/** A transaction that was sent and is in no block. */
async function sendTransaction(t: Test, options: { confirmations?: number } = {}) {
  const scene = await evmScene(t);
  const witness = scene.witness(options);
  return { scene, anvil: scene.anvil, witness, sent: await pollPending(witness, await ask(witness)) };
}

/** The chain's next block, with this base fee. */
async function mineAt(anvil: Anvil, baseFee: bigint): Promise<void> {
  await anvil.setBaseFee(baseFee);
  await anvil.mine();
}

t.test('a transaction that a reorganisation drops is sent again', async (t) => {
  const { scene, anvil, witness, sent } = await sendTransaction(t, { confirmations: 3 });
  await anvil.mine();
  const executed = await pollPending(witness, sent);
  t.equal(executed.detail.waiting_for, 'the event has 1 of 3 blocks');
  await anvil.reorganise(1);
  t.equal(await countTransactions(scene), 0);
  const again = await pollPending(witness, executed);
  t.match(again.detail, { transaction_hash: sent.detail.transaction_hash, waiting_for: /to be executed/ });
  const landed = await pollUntilLanded(anvil, witness, again);
  t.equal(decodeEvmEvidence(landed.evidence).transactionHash, sent.detail.transaction_hash);
  t.equal(await countTransactions(scene), 1);
});

t.test('a transaction that moves to another block is confirmed there', async (t) => {
  const { anvil, witness, sent } = await sendTransaction(t, { confirmations: 4 });
  await anvil.mine(2);
  const before = (await anvil.rpc('eth_getTransactionReceipt', [sent.detail.transaction_hash])) as object;
  await anvil.reorganise(2);
  await pollPending(witness, sent);
  await anvil.mine(4);
  const { evidence } = await pollUntilLanded(anvil, witness, sent);
  t.not(
    decodeEvmEvidence(evidence).blockHash,
    Object.entries(before).find(([name]) => name === 'blockHash')?.[1],
  );
});

t.test('no transaction is sent while the base fee is above the cap', async (t) => {
  const scene = await evmScene(t);
  await mineAt(scene.anvil, 80n * GWEI);
  await t.rejects(ask(scene.witness()), { message: 'base fee 80 gwei is above max_fee_gwei 50' });
});

t.test('a transaction waits while the base fee is above the cap, with an error that names it', async (t) => {
  const scene = await evmScene(t);
  const { anvil } = scene;
  const witness = scene.witness();
  const asked = await ask(witness);
  await mineAt(anvil, 80n * GWEI);
  const waiting = await pollPending(witness, asked);
  t.equal(waiting.detail.waiting_for, 'base fee 80 gwei is above max_fee_gwei 50');
  await mineAt(anvil, GWEI / 2n);
  await pollUntilLanded(anvil, witness, waiting);
  t.equal(await countTransactions(scene), 1);
});

t.test('a transaction whose fee is below the base fee is replaced, and mined once', async (t) => {
  const { scene, anvil, witness, sent } = await sendTransaction(t);
  await mineAt(anvil, 20n * GWEI);
  t.equal(await countTransactions(scene), 0, 'it is stuck');
  const replaced = await pollPending(witness, sent);
  t.match(replaced, { pollAfterMs: 0, detail: { nonce: 0 } }, 'the replacement is stored before it is sent');
  t.not(replaced.detail.transaction_hash, sent.detail.transaction_hash);
  const { evidence } = await pollUntilLanded(anvil, witness, replaced);
  t.equal(decodeEvmEvidence(evidence).transactionHash, replaced.detail.transaction_hash);
  t.equal(await countTransactions(scene), 1);
});

t.test('a transaction that no block includes is replaced after some blocks', async (t) => {
  const { scene, anvil, witness, sent } = await sendTransaction(t);
  const hashes = new Set([sent.detail.transaction_hash]);
  let pending = sent;
  for (let block = 0; block < 18; block++) {
    await anvil.rpc('anvil_dropAllTransactions', []);
    await anvil.mine();
    pending = await pollPending(witness, pending);
    hashes.add(pending.detail.transaction_hash);
  }
  t.equal(hashes.size, 4, 'every 6 blocks');
  await pollUntilLanded(anvil, witness, pending);
  t.equal(await countTransactions(scene), 1);
});

t.test('a replaced transaction that lands after all is the evidence', async (t) => {
  const { anvil, witness, sent } = await sendTransaction(t);
  await mineAt(anvil, 20n * GWEI);
  const replaced = await pollPending(witness, sent);
  await mineAt(anvil, GWEI / 2n);
  await pollPending(witness, sent);
  await anvil.mine();
  const { evidence } = await pollUntilLanded(anvil, witness, replaced);
  t.equal(decodeEvmEvidence(evidence).transactionHash, sent.detail.transaction_hash);
});

t.test('an account without funds is named with its balance and the required amount', async (t) => {
  const scene = await evmScene(t);
  await scene.anvil.setBalance(scene.account.address, ETHER / 1_000_000n);
  const message = new RegExp(
    `^account ${scene.account.address} on chain 31337 has 0.000001 and needs up to 0.000\\d+ of the chain's currency`,
  );
  await t.rejects(ask(scene.witness()), { message });
});

t.test('an account that loses its funds meanwhile is named, and the transaction is sent later', async (t) => {
  const scene = await evmScene(t);
  const { anvil, account } = scene;
  const witness = scene.witness();
  const asked = await ask(witness);
  await anvil.setBalance(account.address, 0n);
  await t.rejects(poll(witness, asked), {
    message: new RegExp(`^account ${account.address} .* has 0 and needs`),
  });
  await anvil.setBalance(account.address, ETHER);
  await pollUntilLanded(anvil, witness, asked);
});

t.test('a nonce that another transaction has taken is given up after the confirmations', async (t) => {
  const scene = await evmScene(t);
  const { anvil, account } = scene;
  const witness = scene.witness();
  const asked = await ask(witness);
  await anvil.sendAs(account.address, { nonce: '0x0', maxFeePerGas: '0x2540be400' });
  await anvil.mine();
  const displaced = await pollPending(witness, asked);
  t.match(displaced.detail, {
    nonce: 0,
    waiting_for: /^the account's nonce is 1, not 0: another transaction/,
  });
  t.match((await pollPending(witness, displaced)).detail, { nonce: 0 }, 'no block has come since');
  await anvil.mine(2);
  const restarted = await pollPending(witness, displaced);
  t.match(restarted, { pollAfterMs: 0, detail: { nonce: 1 } });
  await pollUntilLanded(anvil, witness, restarted);
  t.equal(await countTransactions(scene), 2);
});

t.test('a nonce that a reorganisation has made too high is given up after the confirmations', async (t) => {
  const scene = await evmScene(t);
  const { anvil } = scene;
  const witness = scene.witness();
  await pollUntilLanded(anvil, witness, await ask(witness));
  const second = checkpointOf(2);
  const sent = await pollPending(witness, await ask(witness, second), second);
  t.equal(sent.detail.nonce, 1);
  await anvil.reorganise(2);
  const displaced = await pollPending(witness, sent, second);
  t.match(displaced.detail.waiting_for, "the account's nonce is 0, not 1: the chain has lost one");
  await anvil.mine(2);
  const restarted = await pollPending(witness, displaced, second);
  t.match(restarted.detail, { nonce: 0 });
  await pollUntilLanded(anvil, witness, restarted, second);
});

t.test('another transaction with the nonce that pays more is let through', async (t) => {
  const scene = await evmScene(t);
  const { anvil, account } = scene;
  const witness = scene.witness();
  const asked = await ask(witness);
  await anvil.sendAs(account.address, { nonce: '0x0', maxFeePerGas: '0x3b9aca000' });
  const outbid = await pollPending(witness, asked);
  t.equal(outbid.detail.waiting_for, 'the node has another transaction with nonce 0');
  await pollUntilLanded(anvil, witness, outbid);
  t.equal(await countTransactions(scene), 2);
});

t.test('a request starts again if the configuration has another contract by now', async (t) => {
  const scene = await evmScene(t);
  const silent = await deployWrong(scene.anvil, 'silent');
  const wrong = scene.witness({ contract: silent });
  const asked = await ask(wrong);
  const sent = await pollPending(wrong, asked);
  await scene.anvil.mine();
  await t.rejects(poll(wrong, sent), {
    message: /made no event: 0x\w{40} is no contract for method anchor$/,
  });
  const { evidence } = await pollUntilLanded(scene.anvil, scene.witness(), sent);
  t.equal(decodeEvmEvidence(evidence).contract, scene.contract);
});

t.test('a contract that reverts accepted calls costs three transactions at most', async (t) => {
  const scene = await evmScene(t);
  const contract = await deployWrong(scene.anvil, 'reverting');
  const witness = scene.witness({ contract });
  const landing = pollUntilLanded(scene.anvil, witness, await ask(witness));
  await t.rejects(landing, {
    message: /^3 transactions to 0x\w{40} were reverted, the last one is 0x\w{64}$/,
  });
  t.equal(await countTransactions(scene), 3);
});

t.test('an address without a contract, and an RPC of another chain, are rejected', async (t) => {
  const scene = await evmScene(t);
  const nobody = scene.witness({ contract: `0x${'11'.repeat(20)}` });
  const message = `chain 31337 has no contract at 0x${'11'.repeat(20)}`;
  await t.rejects(ask(nobody), { message });
  const other = scene.witness({ chainId: 1 });
  const wrongChain = 'the RPC is of chain 31337, and chain_id is 1';
  await t.rejects(ask(other), { message: wrongChain });
  await t.rejects(poll(other, await ask(scene.witness())), { message: wrongChain });
});

t.test('an account without funds is named also if the node rejects the estimate', async (t) => {
  const { anvil, account, contract } = await evmScene(t);
  await anvil.setBalance(account.address, 0n);
  const rpc: JsonRpc = async (method, params) => {
    if (method === 'eth_estimateGas') throw new JsonRpcError(-32_000, 'insufficient funds for transfer');
    return anvil.rpc(method, params);
  };
  const payer = { account, chainId: anvil.chainId, maxFeePerGas: 50n * GWEI };
  const signing = () => signNext(rpc, payer, { to: contract, data: '0x' });
  await t.rejects(signing(), { message: new RegExp(`^account ${account.address} .* has 0 and needs`) });
  await anvil.setBalance(account.address, ETHER);
  await t.rejects(signing(), { message: 'insufficient funds for transfer' }, 'and what it says otherwise');
});

t.test('a state of another version is not continued', async (t) => {
  const scene = await evmScene(t);
  const asked = await ask(scene.witness());
  const state = Buffer.from(Buffer.from(asked.state).toString().replace('"version":1', '"version":2'));
  await t.rejects(poll(scene.witness(), { ...asked, state }, checkpointOf(1)), {
    message: /by another version$/,
  });
});
