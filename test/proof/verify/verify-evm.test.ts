/** Bundles with evidence of an EVM witness, verified with and without its chain. */
import type { JsonObject } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import t from 'tap';
import { toBase64 } from '../../../src/proof/bytes/encoding.js';
import { encodeEvmEvidence, evmDetail } from '../../../src/proof/evm/evidence.js';
import { makeEvmSample } from '../evm-sample.js';
import { blocked, failures, rootsOf, service, verify } from '../verifying.js';

const { anvil, evidence, withChain, roots } = await makeEvmSample(t);
const blockTime = evidence.blockTimestamp * 1000;
const evmRpc = (chainId: number) => (chainId === anvil.chainId ? anvil.rpc : undefined);
const at = (ms: number) => timestampFromDate(new Date(ms));

t.test('the chain confirms the evidence of the bundle', async (t) => {
  const report = await verify(withChain(), { trustRoots: roots(), evmRpc });
  t.match(report, { verdict: 'verified' });
  t.match(report.witnesses.at(-1), {
    name: 'chain',
    kind: 'evm',
    status: 'passed',
    time: new Date(blockTime + 1000),
  });
});

t.test(
  'without an RPC of the chain the evidence is not checked, and the page to compare is named',
  async (t) => {
    for (const options of [{}, { evmRpc: () => undefined }]) {
      const report = await verify(withChain(), { trustRoots: roots(), ...options });
      t.match(report, { verdict: 'could_not_check' });
      t.strictSame(blocked(report), ['policy.not_checkable']);
      const message = `chain: checking transaction ${evidence.transactionHash} in block ${evidence.blockNumber} takes an RPC of chain 31337`;
      t.match(report.witnesses.at(-1), { status: 'not_checked', code: 'witness.evm.no_rpc', message });
      t.ok(report.unproven.includes('/witnesses/3'));
    }
    const optional = await verify(withChain(), { trustRoots: roots(), policy: { required: ['tsa'] } });
    t.match(optional, { verdict: 'verified' }, 'if no policy needs it');
  },
);

t.test('evidence is not checked if the RPC is down or its response malformed', async (t) => {
  const down = async () => Promise.reject(new Error('rpc.example answered eth_chainId with status 502'));
  const report = await verify(withChain(), { trustRoots: roots(), evmRpc: () => down });
  t.match(report, { verdict: 'could_not_check' });
  t.match(report.witnesses.at(-1), { code: 'witness.evm.not_checkable', message: /status 502$/ });
  for (const answer of [undefined, null, {}, '0x', 'x'.repeat(1000), []]) {
    const { verdict } = await verify(withChain(), { trustRoots: roots(), evmRpc: () => async () => answer });
    t.equal(verdict, 'could_not_check', String(answer).slice(0, 9));
  }
});

t.test('evidence that contradicts bundle, trust roots or chain fails', async (t) => {
  const recoded = (change: object) => toBase64(encodeEvmEvidence({ ...evidence, ...change }));
  const cases: [code: string, bundle: JsonObject, trust?: object][] = [
    ['witness.malformed', withChain((w) => Object.assign(w, { evidence: '' }))],
    ['witness.evm.digest', withChain((w) => Object.assign(w, { tree_size: 1000 }))],
    [
      'witness.evm.digest',
      withChain((w) => Object.assign(w, { evidence: recoded({ digest: new Uint8Array(32) }) })),
    ],
    ['witness.evm.contract', withChain(), { address: `0x${'11'.repeat(20)}` }],
    ['witness.evm.contract', withChain(), { chainId: 1n }],
    ['witness.evm.contract', withChain(), { method: 'eas' }],
    ['witness.wrong_name', withChain(), { name: 'other' }],
    ['witness.not_trusted_then', withChain(), { validTo: at(blockTime - 1) }],
    ['witness.not_trusted_then', withChain(), { validFrom: at(blockTime + 120_000) }],
    ['witness.detail_mismatch', withChain((w) => Object.assign(w.detail, { block_number: 7 }))],
    [
      'witness.evm.time',
      withChain((w) => {
        const earlier = { ...evidence, blockTimestamp: evidence.blockTimestamp - 3_600 };
        Object.assign(w, { evidence: toBase64(encodeEvmEvidence(earlier)), detail: evmDetail(earlier) });
      }),
    ],
  ];
  for (const [code, bundle, trust] of cases) {
    const report = await verify(bundle, { trustRoots: roots(trust), evmRpc });
    t.ok(failures(report).includes(code), `${code} in ${failures(report)}`);
    t.equal(report.verdict, 'not_verified');
  }
});

t.test('a witness that the trust roots lack does not count', async (t) => {
  const report = await verify(withChain(), { trustRoots: rootsOf(service), evmRpc });
  t.match(report.witnesses.at(-1), { status: 'not_checked', code: 'witness.unknown' });
});

t.test('evidence is not checked with too few blocks or without a limit in the trust roots', async (t) => {
  for (const confirmations of [0, 500]) {
    const report = await verify(withChain(), { trustRoots: roots({ confirmations }), evmRpc });
    t.match(report, { verdict: 'could_not_check' });
    const wanted = confirmations === 0 ? 12 : 500;
    t.match(report.witnesses.at(-1), { message: new RegExp(`has \\d+ of ${wanted} blocks$`) });
  }
});
