import { chmodSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { ANCHOR_RUNTIME } from '../../gen/contracts/anchor.js';
import { makeEvmSample } from '../proof/evm-sample.js';
import { ARTIFACT } from '../proof/sample.js';
import { runHere, runProcess } from '../support/calling/run-cli.js';
import { listen } from '../support/servers/rpc-server.js';
import { startAnvil } from '../support/witnesses/evm/anvil.js';
import { ETHER, evmScene } from '../support/witnesses/evm/scene.js';

/** The example of EIP-155. */
const KEY = '4646464646464646464646464646464646464646464646464646464646464646';
const ADDRESS = '0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f';

/** A file with the key, and one that anyone can read. */
function keyFiles(t: Test): [own: string, open: string] {
  const dir = t.testdir({ own: KEY, open: KEY });
  chmodSync(join(dir, 'own'), 0o600);
  chmodSync(join(dir, 'open'), 0o644);
  return [join(dir, 'own'), join(dir, 'open')];
}

t.test('the contract is created, and its address is printed', async (t) => {
  const { anvil } = await evmScene(t);
  await anvil.setBalance(ADDRESS, ETHER);
  await anvil.rpc('evm_setAutomine', [true]);
  const deploy = ['witnesses', 'deploy-contract', '--rpc-url', anvil.url];
  const { code, stdout, stderr } = await runProcess([...deploy, '--key-file', keyFiles(t)[0]]);
  t.match(stderr, new RegExp(`^transaction 0x[0-9a-f]{64} from ${ADDRESS}\n$`));
  t.match({ code, stdout }, { code: 0, stdout: /^0x[0-9a-f]{40}\n$/ });
  t.equal(await anvil.rpc('eth_getCode', [stdout.trim(), 'latest']), ANCHOR_RUNTIME);
  const env = { EVM_PRIVATE_KEY: KEY, ATTEST_EVM_RPC: anvil.url };
  const json = await runHere(['witnesses', 'deploy-contract', '--json'], { env });
  t.match(JSON.parse(json.stdout), {
    address: /^0x[0-9a-f]{40}$/,
    chain_id: 31_337,
    transaction_hash: /^0x/,
  });
});

t.test('an error of deployment states its cause, without secrets', async (t) => {
  const { anvil } = await evmScene(t);
  const [own, open] = keyFiles(t);
  const cases: [flags: string[], code: number, message: RegExp][] = [
    [['--key-file', own], 1, new RegExp(`account ${ADDRESS} on chain 31337 has 0 and needs up to 0.0`)],
    [['--key-file', own, '--max-fee-gwei', '0.5'], 1, /base fee [\d.]+ gwei is above max_fee_gwei 0.5/],
    [['--key-file', own, '--max-fee-gwei', 'x'], 2, /--max-fee-gwei is not a number above 0/],
    [['--key-file', open], 2, /--key-file .*anyone can read it, its mode is 644/],
    [[], 2, /EVM_PRIVATE_KEY is not set/],
  ];
  for (const [flags, code, message] of cases) {
    const ended = await runHere(['witnesses', 'deploy-contract', '--rpc-url', anvil.url, ...flags]);
    t.match(ended, { code, stdout: '', stderr: message });
    t.notMatch(ended.stderr, KEY);
  }
  const missing = await runHere(['witnesses', 'deploy-contract']);
  t.match(missing, { code: 2, stderr: /'--rpc-url <url>' not specified, nor ATTEST_EVM_RPC/ });
  const wrong = await runHere(['witnesses', 'deploy-contract', '--rpc-url', 'wss://key-0123456789'], {
    env: { EVM_PRIVATE_KEY: KEY },
  });
  t.match(wrong, { code: 2, stderr: /is not an http or https URL/ });
  t.notMatch(wrong.stderr, 'key-0123456789');
});

t.test('attest verify compares evidence with the chain that --evm-rpc names', async (t) => {
  const { anvil, withChain, roots } = await makeEvmSample(t);
  const dir = t.testdir({
    artifact: Buffer.from(ARTIFACT),
    'bundle.json': JSON.stringify(withChain()),
    'roots.json': JSON.stringify(roots()),
  });
  const at = (name: string) => join(dir, name);
  const args = ['verify', at('artifact'), '--bundle', at('bundle.json'), '--trust-roots', at('roots.json')];
  for (const flags of [[anvil.url], [`31337=${anvil.url}`], [`31337=${anvil.url}`, 'http://127.0.0.1:1']]) {
    const given = flags.flatMap((flag) => ['--evm-rpc', flag]);
    t.match(
      await runHere([...args, ...given]),
      { code: 0, stdout: /chain vouched no later than/ },
      flags.join(),
    );
  }
  const fromEnv = await runHere(args, { env: { ATTEST_EVM_RPC: `1=http://127.0.0.1:1 31337=${anvil.url}` } });
  t.match(fromEnv, { code: 0 });
  const open: [flags: string[], said: RegExp][] = [
    [[], /checking transaction 0x[0-9a-f]{64} in block \d+ takes an RPC of chain 31337/],
    [['--evm-rpc', `1=${anvil.url}`], /takes an RPC of chain 31337/],
    [['--evm-rpc', 'http://127.0.0.1:1/api-key-0123456789'], /127\.0\.0\.1:1 cannot be asked: ECONNREFUSED/],
  ];
  for (const [flags, said] of open) {
    const ended = await runHere([...args, ...flags]);
    t.match(ended, { code: 2, stdout: said });
    t.notMatch(ended.stdout, 'api-key-0123456789');
  }
  const other = await startAnvil(t, 1);
  t.match(await runHere([...args, '--evm-rpc', other.url]), {
    code: 2,
    stdout: /the node is of chain 1, not 31337/,
  });
  const wrong = await runHere([...args, '--evm-rpc', 'key-0123456789']);
  t.match(wrong, { code: 2, stderr: /the address of an EVM RPC is not an http or https URL/ });
  t.notMatch(wrong.stderr, 'key-0123456789');
  await anvil.reorganise(3);
  const gone = await runHere([...args, '--evm-rpc', anvil.url]);
  t.match(gone, { code: 1, stdout: /block \d+ of the chain is another/ }, 'after a reorganisation');
});

t.test('a folder of bundles asks a chain once about each event', async (t) => {
  const { anvil, withChain, roots } = await makeEvmSample(t);
  const questions: string[] = [];
  const node = createServer(async (request, response) => {
    const body = await text(request);
    const { method, params } = JSON.parse(body);
    questions.push(JSON.stringify([method, params]));
    const answer = await fetch(anvil.url, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json' },
    });
    response.writeHead(200, { 'content-type': 'application/json' }).end(await answer.text());
  });
  const url = await listen(t, node);
  const bundle = withChain();
  const turned = { ...bundle, witnesses: [...(bundle.witnesses as unknown[])].reverse() };
  const dir = t.testdir({
    art: { artifact: Buffer.from(ARTIFACT) },
    proofs: {
      '1.json': JSON.stringify(bundle),
      '2.json': JSON.stringify(bundle),
      '3.json': JSON.stringify(turned),
    },
    'roots.json': JSON.stringify(roots()),
  });
  const at = (name: string) => join(dir, name);
  const args = ['verify', at('art'), '--bundles', at('proofs'), '--trust-roots', at('roots.json')];
  t.match(await runHere([...args, '--evm-rpc', url]), { code: 0, stdout: /^Files: 1 ok, .*; 3 bundles\n/ });
  t.strictSame(questions.sort(), [...new Set(questions)].sort(), 'no question is asked twice');
  t.match(questions.join(), 'eth_getTransactionReceipt');
  t.match(await runHere(args), {
    code: 2,
    stdout: /not checked {2}artifact \(1\.json\): .*takes an RPC of chain/,
  });
});
