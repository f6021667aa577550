/** Evidence by others' servers: Sigstore's timestamp-authority, a chain for cast, and a calendar for ots. */
import { spawn } from 'node:child_process';
import { createSecretKey, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import type { Test } from 'tap';
import { sha256 } from '../../src/proof/bytes/primitives.js';
import { evmAccount } from '../../src/server/witnessing/clients/evm/account.js';
import { attest, startUp, type Up } from '../support/servers/up.js';
import { codeBlocks, readInlineCode } from '../support/source/pages.js';
import { until } from '../support/until.js';
import { type Anvil, startAnvil } from '../support/witnesses/evm/anvil.js';
import { deployAnchor } from '../support/witnesses/evm/contracts.js';
import { ETHER } from '../support/witnesses/evm/scene.js';
import { type Block, startCalendar } from '../support/witnesses/opentimestamps/calendar.js';
import { run } from './command.js';
import { accepting, type Row, refusing } from './rows.js';
import { fetchText, type Scene } from './scene.js';
import { CHECKOUT, paste, tool } from './tools.js';

type Owner = Pick<Test, 'teardown'>;
type Evidence = {
  name: string;
  detail: Record<string, string | number>;
  evidence: string;
  tree_size: number;
};
type Place = { dir: string; service: Up; id: string; apiKey: string };

const VERIFYING = join(CHECKOUT, 'docs/verifying.md');
const HEIGHT = 850_000;

/** One service with three foreign witnesses, and the lines of docs/verifying.md that check what they say. */
export async function checkEvidence({ dir: parent }: Scene): Promise<Row[]> {
  const stops: (() => unknown)[] = [];
  const owner = { teardown: (stop: () => unknown) => void stops.unshift(stop) } as Owner;
  const dir = join(parent, 'evidence');
  await mkdir(dir);
  try {
    const authority = await startTimestampServer(owner);
    const calendar = await startCalendar(owner as Test);
    const anvil = await startAnvil(owner);
    const chain = await openChain(anvil, dir);
    const WITNESSES = JSON.stringify([authority, chain, { ...BITCOIN, calendars: [calendar.url] }]);
    const service = await startUp(join(dir, 'data'), { WITNESSES, LOG_LEVEL: 'fatal' });
    owner.teardown(service.stop);
    const place = await submit(dir, service);
    await until('the chain has the checkpoint', async () => {
      await anvil.mine();
      return (await findEvidence(place, 'chain')) !== undefined;
    });
    const block = calendar.mine(HEIGHT);
    await until('the block has the checkpoint', async () => {
      attest('witnesses', 'ask', 'bitcoin', '--data-dir', join(dir, 'data'));
      return (await findEvidence(place, 'bitcoin')) !== undefined;
    });
    return [
      ...(await checkAuthority(place)),
      ...(await checkChain(place, anvil.url)),
      ...(await checkBlock(owner, place, block)),
    ];
  } finally {
    for (const stop of stops) await stop();
  }
}

const BITCOIN = { name: 'bitcoin', kind: 'opentimestamps', every: '1s' };

/** Sigstore's authority, with a key and a chain that it makes in memory. */
async function startTimestampServer(owner: Owner): Promise<object> {
  const child = spawn(tool('serve-timestamps'), { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(child, 'close');
  owner.teardown(() => {
    child.kill('SIGTERM');
    return ended;
  });
  const early = ended.then(() => Promise.reject(new Error('serve-timestamps ended')));
  const [url] = await Promise.race([once(createInterface({ input: child.stdout }), 'line'), early]);
  early.catch(() => {});
  const chain = await until('serve-timestamps answers', () => fetchText(`${url}/certchain`));
  return { name: 'sigstore-tsa', kind: 'rfc3161', url, chain_pem: chain, required: true };
}

async function openChain(anvil: Anvil, dir: string): Promise<object> {
  const contract = await deployAnchor(anvil);
  const key = randomBytes(32).toString('hex');
  await anvil.setBalance(evmAccount(createSecretKey(Buffer.from(key, 'hex'))).address, ETHER);
  const file = join(dir, 'evm.key');
  await writeFile(file, key, { mode: 0o600 });
  const where = { rpc_url: anvil.url, chain_id: anvil.chainId, contract, key_file: file };
  return { name: 'chain', kind: 'evm', ...where, max_fee_gwei: 50, confirmations: 2, every: '1s' };
}

async function submit(dir: string, service: Up): Promise<Place> {
  const data = ['--data-dir', join(dir, 'data')];
  const path = join(dir, 'report.json');
  await writeFile(path, JSON.stringify({ salt: randomBytes(8).toString('hex') }));
  const id = attest('submit', path, '--wait', '--quiet', ...data).trim();
  const { live_key: apiKey } = JSON.parse(await readFile(join(dir, 'data/credentials.json'), 'utf8'));
  return { dir, service, id, apiKey };
}

async function fetchBundle({ service, id, apiKey }: Place) {
  const headers = { authorization: `Bearer ${apiKey}` };
  return JSON.parse(await fetchText(`${service.baseUrl}/v1/attestations/${id}/bundle`, headers));
}

async function findEvidence(place: Place, name: string): Promise<Evidence | undefined> {
  const { witnesses } = await fetchBundle(place);
  return witnesses.find((witness: Evidence) => witness.name === name);
}

/** Our verifier on the authority's stamp, with its chain and with that of the embedded authority. */
async function checkAuthority({ dir, service, id }: Place): Promise<Row[]> {
  attest('bundle', id, '--wait', '-o', join(dir, 'bundle.json'), '--data-dir', join(dir, 'data'));
  const roots = JSON.parse(await fetchText(`${service.verifyUrl}/trust_roots.json`));
  const chains: { name: string; cert_chain_pem: string[] }[] = roots.timestamp_authorities;
  const embedded = chains.find(({ name }) => name === 'self-tsa');
  const swapped = chains.map((one) => ({ ...one, cert_chain_pem: embedded?.cert_chain_pem }));
  await writeFile(join(dir, 'roots.json'), JSON.stringify(roots));
  await writeFile(join(dir, 'swapped.json'), JSON.stringify({ ...roots, timestamp_authorities: swapped }));
  const verify = (file: string) =>
    run(tool('attest'), ['verify', 'report.json', '--bundle', 'bundle.json', '--trust-roots', file], {
      cwd: dir,
    });
  return [
    accepting('timestamp-authority', 'as a witness, for attest verify', await verify('roots.json'), [
      /sigstore-tsa/,
    ]),
    refusing('timestamp-authority', 'the same, under another chain', await verify('swapped.json')),
  ];
}

/** The lines about JSON-RPC, and those of Foundry's cast. */
async function checkChain(place: Place, rpc: string): Promise<Row[]> {
  const { dir } = place;
  const { evidence, tree_size } = (await findEvidence(place, 'chain'))!;
  const record = JSON.parse(Buffer.from(evidence, 'base64').toString());
  const { checkpoints } = await fetchBundle(place);
  const { note } = checkpoints.find((one: { tree_size: number }) => one.tree_size === tree_size);
  const body = `${note.split('\n\n')[0]}\n`;
  await writeFile(join(dir, 'checkpoint-body.txt'), body);
  const digest = Buffer.from(sha256(Buffer.from(body))).toString('hex');
  const { transaction_hash: TX, block_hash: BLOCK, block_number } = record;
  const env = { RPC: rpc, TX, BLOCK, NUMBER: `0x${Number(block_number).toString(16)}` };
  const blocks = await codeBlocks(VERIFYING, 'bash');
  const lines = blocks.find((block) => block.includes('eth_getTransactionReceipt')) ?? 'false';
  const [receipt = 'false', header = 'false'] = await readInlineCode(VERIFYING, 'cast ');
  return [
    accepting('docs', 'JSON-RPC of a chain', await paste(lines, dir, env), [
      new RegExp(`^${digest}`, 'm'),
      new RegExp(`0x${digest}`),
      new RegExp(`"hash":"${BLOCK}"`),
    ]),
    accepting('cast', 'the transaction', await paste(receipt, dir, env), [
      /status +1 \(success\)/,
      new RegExp(digest),
    ]),
    accepting('cast', 'its block', await paste(header, dir, env), [new RegExp(`hash +${BLOCK}`)]),
    refusing('cast', 'another transaction', await paste(receipt, dir, { ...env, TX: 'none' })),
  ];
}

/** The lines about .ots files, with the configuration of a Bitcoin node that has the block. */
async function checkBlock(owner: Owner, { dir, service, id, apiKey }: Place, block: Block): Promise<Row[]> {
  const lines = (await codeBlocks(VERIFYING, 'bash')).find((one) => one.includes('ots verify')) ?? 'false';
  const connection = { ATTEST_URL: service.baseUrl, ATTEST_API_KEY: apiKey, id };
  const verify = async (node: Block) => {
    const HOME = join(dir, `home-${node.height}`);
    await mkdir(join(HOME, '.bitcoin'), { recursive: true });
    await writeFile(join(HOME, '.bitcoin/bitcoin.conf'), await startNode(owner, node));
    return paste(`rm -f leaf*\n${lines}`, dir, { ...connection, HOME });
  };
  const other = { height: HEIGHT, header: block.header.with(40, block.header[40]! ^ 1) };
  return [
    accepting('ots', 'a leaf, by a Bitcoin node', await verify(block), [
      new RegExp(`Bitcoin block ${HEIGHT} attests`),
    ]),
    refusing('ots', 'a leaf, by a node with another block', await verify(other)),
  ];
}

/** Answers what `ots` wants of a Bitcoin node. @returns its client's configuration */
async function startNode(owner: Owner, { height, header }: Block): Promise<string> {
  const hash = Buffer.from(sha256(sha256(header)))
    .reverse()
    .toString('hex');
  const answers: Record<string, unknown> = {
    getblockcount: height,
    getblockhash: hash,
    getblockheader: Buffer.from(header).toString('hex'),
  };
  const server = createServer(async (request, response) => {
    const { id, method } = JSON.parse((await buffer(request)).toString());
    response.end(JSON.stringify({ id, result: answers[method] ?? null, error: null }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  owner.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return `rpcconnect=127.0.0.1\nrpcport=${port}\nrpcuser=u\nrpcpassword=p\n`;
}
