/** The TUF repository, for cosign, npm sigstore and python-tuf: from its making to the replacement of each key. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { verify } from 'sigstore';
import { attest, startUp } from '../support/servers/up.js';
import { until } from '../support/until.js';
import { run, type Said } from './command.js';
import { accepting, type Row, refusing } from './rows.js';
import { fetchText, type Scene } from './scene.js';
import { PYTHON, tool } from './tools.js';

const UPDATE = `
import sys
from tuf.ngclient import Updater
url, root, cache = sys.argv[1:]
with open(root, "rb") as file:
    updater = Updater(cache, url, cache, url + "/targets", bootstrap=file.read())
info = updater.get_targetinfo("trusted_root.json")
with open(updater.download_target(info)) as file:
    print(file.read())
`;
const KEYS = ['online', 'online-2', 'log', 'log-2', 'log-test'];

/** A repository of a service of its own: its log's key is to be replaced. */
type Place = { dir: string; data: string; url: string };

/** Clients that started from the first root follow each key that is replaced, and no mirror that lies. */
export async function checkTuf(scene: Pick<Scene, 'dir'>): Promise<Row[]> {
  const dir = join(scene.dir, 'tuf');
  await mkdir(dir);
  for (const name of KEYS) await writeKey(join(dir, `${name}.pem`));
  const [online, online2, log, log2, logTest] = KEYS.map((name) => join(dir, `${name}.pem`));
  const data = join(dir, 'data');
  const service = await startUp(data, {
    TUF_KEY_FILE: `${online},${online2}`,
    LOG_KEY_FILE: `live=${log},live=${log2},test=${logTest}`,
    LOG_LEVEL: 'error',
  });
  try {
    const place = { dir, data, url: `${service.verifyUrl}/tuf` };
    return [
      ...(await checkFirst(place)),
      ...(await checkRotation(place, service.verifyUrl)),
      ...(await checkForged(place)),
    ];
  } finally {
    await service.stop();
  }
}

async function checkFirst(place: Place): Promise<Row[]> {
  const { dir, data } = place;
  await submit(place, 'first');
  attest(
    'tuf',
    'init',
    '--key',
    join(dir, 'root.pem'),
    '--out',
    join(dir, 'root.json'),
    '--yes',
    '--data-dir',
    data,
  );
  await writeFile(join(dir, 'timestamp.json'), await fetchText(`${place.url}/timestamp.json`));
  return [
    accepting('cosign', 'initialize with our root', await initialize(place), []),
    accepting('cosign', 'a bundle, no flag for the trusted root', await cosign(place, 'first'), [
      /^Verified OK$/m,
    ]),
    accepting('npm sigstore', 'a bundle, by default', await npmSigstore(place, 'first'), []),
    accepting('python-tuf', 'our repository', await pythonTuf(place), [/https:\/\/live\./]),
  ];
}

async function checkRotation(place: Place, verifyUrl: string): Promise<Row[]> {
  const { dir, data } = place;
  const tuf = (...args: string[]) => attest('tuf', ...args, '--yes', '--data-dir', data);
  tuf('rotate', '--key', join(dir, 'root.pem'), '--new-key', join(dir, 'root-2.pem'));
  tuf('rotate', '--key', join(dir, 'root-2.pem'), '--online-key');
  attest('log', 'new-epoch', '--environment', 'live', '--key', join(dir, 'log-2.pem'), '--data-dir', data);
  await until('the trust roots have the new log', async () =>
    (await fetchText(`${verifyUrl}/trusted_root.json`)).includes('https://live-2.'),
  );
  // An API process may write to the log before for some seconds.
  await until('a submission is in the new log', async () => {
    await submit(place, 'second');
    const bundle = JSON.parse(await readFile(join(dir, 'second.sigstore.json'), 'utf8'));
    const { envelope } = bundle.verificationMaterial.tlogEntries[0].inclusionProof.checkpoint;
    return envelope.startsWith('live-2.');
  });
  const early = refusing('cosign', 'a bundle of a log that is not published', await cosign(place, 'second'));
  tuf('publish', '--key', join(dir, 'root-2.pem'));
  return [
    early,
    accepting('cosign', 'the same once it is, root and online key replaced', await cosign(place, 'second'), [
      /^Verified OK$/m,
    ]),
    accepting('cosign', 'a bundle of the log before', await cosign(place, 'first'), [/^Verified OK$/m]),
    accepting('npm sigstore', 'the same', await npmSigstore(place, 'second'), []),
    accepting('python-tuf', 'the same, from the first root', await pythonTuf(place), [/https:\/\/live-2\./]),
    accepting('cosign', 'initialize with the first root', await initialize(place), []),
    accepting('cosign', 'a bundle of the new log then', await cosign(place, 'second'), [/^Verified OK$/m]),
  ];
}

async function checkForged(place: Place): Promise<Row[]> {
  const { dir, url } = place;
  const current = await fetchText(`${url}/timestamp.json`);
  const unsigned = current.replace(
    /"sig":"../,
    (text) => `${text.slice(0, -2)}${text.endsWith('00') ? '11' : '00'}`,
  );
  const rows: Row[] = [];
  for (const [what, text] of [
    ['a timestamp with a wrong signature', unsigned],
    ['a mirror that goes back to the first timestamp', await readFile(join(dir, 'timestamp.json'), 'utf8')],
  ] as const) {
    await withMirror(url, { '/timestamp.json': text }, async (mirror) => {
      rows.push(refusing('python-tuf', what, await pythonTuf({ ...place, url: mirror })));
      rows.push(refusing('cosign', what, await initialize({ ...place, url: mirror })));
      rows.push(refusing('npm sigstore', what, await npmSigstore({ ...place, url: mirror }, 'second')));
    });
  }
  return rows;
}

/** Serves the repository with other files in the places of some. */
async function withMirror(
  url: string,
  files: Readonly<Record<string, string>>,
  use: (url: string) => Promise<void>,
): Promise<void> {
  const server = createServer(async ({ url: path = '' }, response) => {
    const answer = await fetch(url + path);
    response.writeHead(path in files ? 200 : answer.status).end(files[path] ?? (await answer.text()));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  server.close();
}

/** Attests a file; writes it, its Sigstore bundle and the key of the statement. */
async function submit({ dir, data, url }: Place, name: string): Promise<void> {
  const path = join(dir, `${name}.json`);
  await writeFile(path, JSON.stringify({ name }));
  const id = attest('submit', path, '--wait', '--quiet', '--data-dir', data).trim();
  attest(
    'bundle',
    id,
    '--format',
    'sigstore.json',
    '-o',
    join(dir, `${name}.sigstore.json`),
    '--data-dir',
    data,
  );
  const roots = JSON.parse(await fetchText(`${url.slice(0, -'/tuf'.length)}/trust_roots.json`));
  const keys: { environment: string; public_key_pem: string }[] = roots.dsse_signing_keys;
  await writeFile(
    join(dir, 'dsse.pem'),
    keys.find(({ environment }) => environment === 'live')?.public_key_pem ?? '',
  );
}

function initialize({ dir, url }: Place): Promise<Said> {
  return run(tool('cosign'), ['initialize', '--mirror', url, '--root', 'root.json'], inFolder(dir));
}

function cosign({ dir }: Place, name: string): Promise<Said> {
  const type = ['--type', 'urn:attestation-service:submission:v1'];
  const files = ['--key', 'dsse.pem', '--bundle', `${name}.sigstore.json`, `${name}.json`];
  return run(tool('cosign'), ['verify-blob-attestation', ...type, ...files], inFolder(dir));
}

function inFolder(dir: string) {
  return { cwd: dir, env: { TUF_ROOT: join(dir, 'cosign') } };
}

/** Verifies a bundle with no option but where the trust roots are, and the key of the statement. */
async function npmSigstore({ dir, url }: Place, name: string): Promise<Said> {
  const key = await readFile(join(dir, 'dsse.pem'), 'utf8');
  const bundle = JSON.parse(await readFile(join(dir, `${name}.sigstore.json`), 'utf8'));
  const tuf = { tufMirrorURL: url, tufRootPath: join(dir, 'root.json'), tufCachePath: join(dir, 'npm') };
  try {
    await verify(bundle, { ...tuf, keySelector: () => key });
    return { code: 0, output: 'verified' };
  } catch (error) {
    return { code: 1, output: inspect(error) };
  }
}

async function pythonTuf({ dir, url }: Place): Promise<Said> {
  const cache = join(dir, 'python-tuf');
  await mkdir(cache, { recursive: true });
  return run(join(PYTHON, 'bin/python'), ['-c', UPDATE, url, join(dir, 'root.json'), cache]);
}

async function writeKey(path: string): Promise<void> {
  const { privateKey } = generateKeyPairSync('ed25519');
  await writeFile(path, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
}
