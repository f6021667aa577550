/** Sigstore bundles, good and tampered, for cosign, sigstore-go and @sigstore/verify. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { verifyWithSigstore } from '../support/judging/foreign-verifiers.js';
import { run, type Said } from './command.js';
import { accepting, type Row, refusing } from './rows.js';
import type { Scene } from './scene.js';
import { STAMP_TAMPERINGS, TAMPERINGS, type Tampering, tampered } from './tampered.js';
import { paste, tool, verifyingScripts } from './tools.js';

/** Files to take in the places of those that the lines of docs/verifying.md name. */
type Instead = Record<string, string>;

/** Every verifier accepts the good bundle and refuses each tampered one. */
export async function checkSigstore(scene: Scene): Promise<Row[]> {
  const { dir } = scene;
  await mkdir(join(dir, 'tampered'));
  const rows = [...(await allAccept(dir, 'a copy of the bundle', await write(scene, ['good', () => {}])))];
  for (const [what, change] of TAMPERINGS) {
    rows.push(...(await allRefuse(dir, what, await write(scene, [what, change]))));
  }
  await writeStrangers(dir);
  rows.push(...(await allRefuse(dir, 'another file', { 'report.json': 'other.json' })));
  rows.push(...(await allRefuse(dir, 'another key', { 'dsse.pem': 'stranger.pem' })));
  rows.push(...(await allRefuse(dir, 'another log key', { 'trusted_root.json': 'other_root.json' })));
  return rows;
}

/** By their defaults, the verifiers accept the bundle with its time stamp, and none without, or with a wrong one. */
export async function checkStamps(scene: Scene): Promise<Row[]> {
  const { dir } = scene;
  await mkdir(join(dir, 'tampered'), { recursive: true });
  const rows = await stampRows(dir, 'the bundle', {}, (tool, what, said) =>
    accepting(tool, what, said, [/verified/i]),
  );
  for (const [what, change] of STAMP_TAMPERINGS)
    rows.push(...(await stampRows(dir, what, await write(scene, [what, change]), refusing)));
  await writeFile(join(dir, 'no_authority.json'), await withoutAuthorities(dir));
  const instead = { 'trusted_root.json': 'no_authority.json' };
  rows.push(...(await stampRows(dir, 'trust roots without the authority', instead, refusing)));
  return rows;
}

async function stampRows(
  dir: string,
  what: string,
  instead: Instead,
  row: (tool: string, what: string, said: Said) => Row,
): Promise<Row[]> {
  return [
    row(
      'cosign',
      `${what}, with --use-signed-timestamps`,
      await cosign(dir, instead, '--use-signed-timestamps'),
    ),
    row('sigstore-go', `${what}, WithObserverTimestamps(1)`, await sigstoreGo(dir, instead, '-time')),
    row('sigstore-go', `${what}, WithSignedTimestamps(1)`, await sigstoreGo(dir, instead, '-stamp')),
    row('@sigstore/verify', `${what}, by its defaults`, await sigstoreJs(dir, instead)),
  ];
}

/** What `@sigstore/verify` makes of a bundle by its defaults. */
async function sigstoreJs(dir: string, instead: Instead): Promise<Said> {
  const read = (name: string) => readFile(join(dir, instead[name] ?? name), 'utf8');
  const [bundle, root, key] = [
    await read('sigstore.json'),
    await read('trusted_root.json'),
    await read('dsse.pem'),
  ];
  try {
    verifyWithSigstore(JSON.parse(bundle), JSON.parse(root), [key], {});
    return { code: 0, output: 'verified' };
  } catch (error) {
    return { code: 1, output: String(error) };
  }
}

async function withoutAuthorities(dir: string): Promise<string> {
  const root = JSON.parse(await readFile(join(dir, 'trusted_root.json'), 'utf8'));
  return JSON.stringify({ ...root, timestampAuthorities: [] });
}

/** Writes a bundle with a change made to it. */
async function write({ dir, bundle, other }: Scene, [what, change]: Tampering): Promise<Instead> {
  const path = `tampered/${what.replaceAll(' ', '-')}.json`;
  const changed = tampered(bundle.sigstore_bundle, other.sigstore_bundle, change);
  await writeFile(join(dir, path), JSON.stringify(changed));
  return { 'sigstore.json': path };
}

/** Writes a key that has signed nothing, and a trusted root with another key for each log. */
async function writeStrangers(dir: string): Promise<void> {
  const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey;
  await writeFile(join(dir, 'stranger.pem'), stranger.export({ type: 'spki', format: 'pem' }));
  const root = JSON.parse(await readFile(join(dir, 'trusted_root.json'), 'utf8'));
  for (const log of root.tlogs) {
    const { publicKey } = generateKeyPairSync('ed25519');
    log.publicKey.rawBytes = publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
  }
  await writeFile(join(dir, 'other_root.json'), JSON.stringify(root));
}

async function allAccept(dir: string, what: string, instead: Instead): Promise<Row[]> {
  return [
    accepting('cosign', what, await cosign(dir, instead), [/^Verified OK$/m]),
    accepting('sigstore-go', what, await sigstoreGo(dir, instead), [/verified/]),
  ];
}

async function allRefuse(dir: string, what: string, instead: Instead): Promise<Row[]> {
  return [
    refusing('cosign', what, await cosign(dir, instead)),
    refusing('sigstore-go', what, await sigstoreGo(dir, instead)),
  ];
}

/** The line of cosign, with other files in the places of some. */
async function cosign(dir: string, instead: Instead, flag = ''): Promise<Said> {
  const scripts = (await verifyingScripts()).join('\n');
  const [line] = /^cosign verify-blob-attestation(?:.*\\\n)*.*/m.exec(scripts) ?? [''];
  return paste(`${withFiles(line, instead)} ${flag}`, dir);
}

/** What sigstore-go says of the bundle, with other files in the places of some. */
export async function sigstoreGo(dir: string, instead: Instead, ...flags: string[]): Promise<Said> {
  const files = ['report.json', 'sigstore.json', 'trusted_root.json', 'dsse.pem'];
  return run(tool('verify-bundle'), [...flags, ...files.map((name) => instead[name] ?? name)], { cwd: dir });
}

function withFiles(line: string, instead: Instead): string {
  return Object.entries(instead).reduce((text, [name, other]) => text.replace(` ${name}`, ` ${other}`), line);
}
