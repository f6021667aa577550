/** Evidence against a real chain, and against nodes that answer wrongly. */
import * as fc from 'fast-check';
import t from 'tap';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import { checkOnChain } from '../../../src/proof/evm/check.js';
import { recordingCall } from '../../../src/proof/evm/contract.js';
import { decodeEvmEvidence, type EvmEvidence, encodeEvmEvidence } from '../../../src/proof/evm/evidence.js';
import type { JsonRpc } from '../../../src/proof/evm/json-rpc.js';
import { FUZZ } from '../../support/fuzz.js';
import { ask, evmScene, pollUntilLanded } from '../../support/witnesses/evm/scene.js';

const scene = await evmScene(t);
const witness = scene.witness();
const { anvil } = scene;
const { evidence: bytes } = await pollUntilLanded(anvil, witness, await ask(witness));
const evidence = decodeEvmEvidence(bytes);
const data = recordingCall(evidence.digest);
await anvil.mine(3);

const changed = (change: Partial<EvmEvidence>) => checkOnChain(anvil.rpc, { ...evidence, ...change }, 2);

t.test('evidence on the chain is confirmed, and evidence it contradicts is refuted', async (t) => {
  t.strictSame(await changed({}), { type: 'confirmed' });
  const other = `0x${'11'.repeat(32)}`;
  const cases: [change: Partial<EvmEvidence>, code: string][] = [
    [{ blockHash: other }, 'block'],
    [{ blockNumber: evidence.blockNumber - 1 }, 'block'],
    [{ blockTimestamp: evidence.blockTimestamp + 1 }, 'time'],
    [{ transactionHash: other }, 'transaction'],
    [{ logIndex: 1 }, 'event'],
    [{ contract: other.slice(0, 42) }, 'event'],
    [{ digest: new Uint8Array(32) }, 'event'],
  ];
  for (const [change, code] of cases) {
    t.match(await changed(change), { type: 'refuted', code }, Object.keys(change).join());
  }
});

t.test('evidence that the node cannot check is unknown', async (t) => {
  t.match(await changed({ chainId: 1 }), { type: 'unknown', message: 'the node is of chain 31337, not 1' });
  t.match(await changed({ blockNumber: 1_000_000 }), { type: 'unknown', message: /has no block 1000000$/ });
  t.match(await checkOnChain(anvil.rpc, evidence, 1_000), { type: 'unknown', message: /of 1000 blocks$/ });
  const forgetful: JsonRpc = async (method, params) =>
    method === 'eth_getTransactionReceipt' ? null : anvil.rpc(method, params);
  t.match(await checkOnChain(forgetful, evidence, 2), { type: 'unknown', message: /does not keep receipts/ });
});

t.test('a reverted transaction is no evidence', async (t) => {
  const reverted: JsonRpc = async (method, params) => {
    const answer = await anvil.rpc(method, params);
    return method === 'eth_getTransactionReceipt' ? { ...Object(answer), status: '0x0' } : answer;
  };
  t.match(await checkOnChain(reverted, evidence, 2), { type: 'refuted', code: 'reverted' });
});

t.test('another event in the same block is distinguished by its index', async (t) => {
  const { transactionHash } = await anvil.execute({ to: scene.contract, data });
  await anvil.mine(2);
  t.match(await changed({ transactionHash }), { type: 'refuted', code: 'transaction' });
});

t.test('no flipped byte of evidence is confirmed', async (t) => {
  const flips = fc.integer({ min: 1, max: 255 });
  const [flip] = fc.sample(flips, { seed: FUZZ.seed, numRuns: 1 });
  let decoded = 0;
  for (let place = 0; place < bytes.length; place++) {
    for (const mask of [1, 2, 4, flip!]) {
      const wrong = Uint8Array.from(bytes);
      wrong[place]! ^= mask;
      const other = tryDecode(wrong);
      if (other === undefined) continue;
      decoded++;
      const { type } = await checkOnChain(anvil.rpc, other, 2);
      if (type === 'confirmed') t.fail(Buffer.from(wrong).toString());
    }
  }
  t.ok(decoded > 200, `${decoded} of them can be read`);
  t.equal(Buffer.compare(encodeEvmEvidence(evidence), bytes), 0);
});

function tryDecode(wrong: Uint8Array): EvmEvidence | undefined {
  try {
    return decodeEvmEvidence(wrong);
  } catch {
    return undefined;
  }
}

const METHODS = ['eth_chainId', 'eth_getBlockByNumber', 'eth_getTransactionReceipt'] as const;

t.test('malformed answers confirm nothing, and the error is one of format', async () => {
  const wrong = fc.tuple(fc.constantFrom(...METHODS), fc.jsonValue());
  await fc.assert(
    fc.asyncProperty(wrong, async ([broken, answer]) => {
      const rpc: JsonRpc = async (method, params) => (method === broken ? answer : anvil.rpc(method, params));
      return (await verdictOf(rpc)) !== 'confirmed';
    }),
    { seed: FUZZ.seed, numRuns: 3 * FUZZ.cases },
  );
});

const MEMBERS: readonly (readonly [method: string, members: readonly string[]])[] = [
  ['eth_getBlockByNumber', ['hash', 'number', 'timestamp', 'transactions', 'baseFeePerGas']],
  ['eth_getTransactionReceipt', ['transactionHash', 'blockHash', 'blockNumber', 'status', 'logs']],
];
const WRONG = ['', '0x', '0x00', '1', 7, {}, '0x1'.padEnd(70_000, '0'), [null], [{}], true];

t.test('an answer with one malformed member confirms nothing', async (t) => {
  for (const [broken, members] of MEMBERS) {
    for (const member of members) {
      for (const value of WRONG) {
        const rpc: JsonRpc = async (method, params) => {
          const answer = await anvil.rpc(method, params);
          return method === broken ? { ...Object(answer), [member]: value } : answer;
        };
        t.equal(await verdictOf(rpc), 'malformed', `${broken} ${member} ${String(value).slice(0, 9)}`);
      }
    }
  }
});

async function verdictOf(rpc: JsonRpc): Promise<string> {
  try {
    return (await checkOnChain(rpc, evidence, 2)).type;
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    return 'malformed';
  }
}
