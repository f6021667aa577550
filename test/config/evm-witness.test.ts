import { randomBytes } from 'node:crypto';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { WitnessKind } from '../../gen/attestation/v1/bundle_pb.js';
import { readConfig } from '../../src/config/config.js';
import { ConfigError, type Env } from '../../src/config/settings.js';

const KEY = randomBytes(32).toString('hex');
const OTHER = randomBytes(32).toString('hex');
/** An example of EIP-55. */
const CHECKSUMMED = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
const GOOD = {
  name: 'mainnet',
  kind: 'evm',
  rpc_url: 'https://rpc.example/v3/secret-api-key',
  chain_id: 1,
  contract: CHECKSUMMED,
  key_file: 'key',
  max_fee_gwei: 12.5,
};

/** A folder with keys, and a file of witnesses beside them. */
function folder(t: Test, witnesses: object[]): Env {
  const dir = t.testdir({
    key: `0x${KEY}\n`,
    other: OTHER,
    open: KEY,
    short: KEY.slice(2),
    zero: '0'.repeat(64),
    'witnesses.json': JSON.stringify(witnesses),
  });
  for (const name of ['key', 'other', 'short', 'zero']) chmodSync(join(dir, name), 0o640);
  chmodSync(join(dir, 'open'), 0o604);
  return { WITNESSES: join(dir, 'witnesses.json') };
}

const read = (env: Env) => readConfig(env, { process: 'up' }).witnesses;

function problemsOf(env: Env): string[] {
  try {
    read(env);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    if (error.message.includes(KEY) || error.message.includes('secret-api-key')) return ['a secret is shown'];
    return error.problems.map(({ name, problem }) => `${name} ${problem}`);
  }
}

t.test('an EVM witness is read, with defaults for its optional members', async (t) => {
  t.match(read(folder(t, [GOOD])), [
    {
      kind: WitnessKind.EVM,
      rpcUrl: GOOD.rpc_url,
      chainId: 1,
      contract: CHECKSUMMED.toLowerCase(),
      confirmations: 12,
      maxFeePerGas: 12_500_000_000n,
      required: false,
      everyMs: 3_600_000,
    },
  ]);
  const all = {
    ...GOOD,
    method: 'anchor',
    confirmations: 3,
    max_fee_gwei: 1e-9,
    every: '1d',
    required: false,
  };
  t.match(read(folder(t, [all])), [{ confirmations: 3, maxFeePerGas: 1n, everyMs: 86_400_000 }]);
});

t.test('the key may be a setting', async (t) => {
  const env = { ...folder(t, [{ ...GOOD, key_file: undefined }]), EVM_PRIVATE_KEY: KEY };
  const [witness] = read(env);
  const fromFile = read(folder(t, [GOOD]))[0];
  t.ok(witness?.kind === WitnessKind.EVM && fromFile?.kind === WitnessKind.EVM);
  if (witness?.kind !== WitnessKind.EVM || fromFile?.kind !== WitnessKind.EVM) return;
  t.ok(witness.privateKey.equals(fromFile.privateKey));
  t.strictSame(problemsOf({ EVM_PRIVATE_KEY: KEY.slice(1) }), ['EVM_PRIVATE_KEY is wrong']);
});

t.test('each wrong member is reported under its place, without secrets', async (t) => {
  const cases: [change: object, problem: RegExp][] = [
    [{ rpc_url: undefined }, /\.rpc_url is not set$/],
    [{ rpc_url: 'wss://rpc.example' }, /\.rpc_url is wrong \(it is not http or https\)$/],
    [{ chain_id: undefined }, /\.chain_id is not set$/],
    [{ chain_id: '1' }, /\.chain_id is wrong$/],
    [{ chain_id: 0 }, /\.chain_id is wrong$/],
    [{ contract: undefined }, /\.contract is not set$/],
    [{ contract: '0x12' }, /\.contract is "0x12"$/],
    [{ contract: CHECKSUMMED.replace('aA', 'AA') }, /\.contract is ".*" \(its capitals are no checksum\)$/],
    [{ method: 'store' }, /\.method is "store"$/],
    [{ method: 'eas' }, /\.method is "eas" \(time stamps of EAS are not supported any more\)$/],
    [{ key_file: undefined }, /\.key_file is not set, nor is EVM_PRIVATE_KEY$/],
    [{ key_file: 'nowhere' }, /\.key_file is "nowhere" \(.*ENOENT\)$/],
    [{ key_file: 'open' }, /\.key_file is "open" \(anyone can read it, its mode is 604\)$/],
    [{ key_file: 'short' }, /\.key_file is "short"$/],
    [{ key_file: 'zero' }, /\.key_file is "zero" \(it is no number of the curve\)$/],
    [{ confirmations: 0 }, /\.confirmations is wrong$/],
    [{ max_fee_gwei: undefined }, /\.max_fee_gwei is not set$/],
    [{ max_fee_gwei: 0 }, /\.max_fee_gwei is wrong$/],
    [{ max_fee_gwei: '50' }, /\.max_fee_gwei is wrong$/],
    [{ max_fee_gwei: 1e7 }, /\.max_fee_gwei is wrong$/],
    [{ url: 'https://a.example' }, /^WITNESSES\[0\] has a member "url"$/],
  ];
  for (const [change, problem] of cases) {
    const [found = '', ...more] = problemsOf(folder(t, [{ ...GOOD, ...change }]));
    t.match(found, problem, JSON.stringify(change));
    t.match(found, /^WITNESSES\[0\]/);
    t.strictSame(more, []);
  }
});

t.test('two witnesses of one chain need two accounts', async (t) => {
  const second = (change: object) => folder(t, [GOOD, { ...GOOD, name: 'second', ...change }]);
  t.strictSame(problemsOf(second({ environments: ['test'] })), [
    'WITNESSES has one account on chain 1 for "mainnet" and "second"',
  ]);
  t.strictSame(problemsOf(second({ chain_id: 10 })), []);
  t.strictSame(problemsOf(second({ key_file: 'other' })), []);
  t.strictSame(problemsOf(second({ key_file: 'short' })), ['WITNESSES[1].key_file is "short"']);
});
