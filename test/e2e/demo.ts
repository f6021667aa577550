/**
 * The main job, once, as a newcomer would do it, on real parts: start the service, submit real files, wait until
 * they are witnessed, fetch their bundles, stop the service, verify offline with our verifier, openssl and Sigstore's.
 * Exits with 1 when any step fails.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { verifyWithOpenssl, verifyWithSigstore } from '../support/judging/foreign-verifiers.js';
import { attest, startUp } from '../support/servers/up.js';

const FILES = ['package.json', 'README.md', 'LICENSE'].map((name) =>
  fileURLToPath(new URL(`../../../${name}`, import.meta.url)),
);

const dir = mkdtempSync(join(tmpdir(), 'attest-demo-'));
const at = (name: string) => join(dir, name);
const readJson = (name: string) => JSON.parse(readFileSync(at(name), 'utf8'));
let step = 0;

function say(text: string): void {
  console.log(`${++step}. ${text}`);
}

async function download(url: string, name: string): Promise<void> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  writeFileSync(at(name), Buffer.from(await answer.arrayBuffer()));
}

/** What is checked without us: the time stamp by openssl, the Sigstore bundle by Sigstore's verifier. */
function verifyWithForeignTools(bundleName: string): void {
  const bundle = readJson(bundleName);
  const roots = readJson('trust_roots.json');
  const stamp = bundle.witnesses.find(({ kind }: { kind: string }) => kind === 'rfc3161');
  const checkpoint = bundle.checkpoints.find(
    ({ tree_size }: { tree_size: number }) => tree_size === stamp.tree_size,
  );
  const body = checkpoint.note.slice(0, checkpoint.note.lastIndexOf('\n\n') + 1);
  const authority = roots.timestamp_authorities.find(({ name }: { name: string }) => name === stamp.name);
  verifyWithOpenssl(Buffer.from(body), Buffer.from(stamp.evidence, 'base64'), authority.cert_chain_pem);
  const keys = roots.dsse_signing_keys.map(
    ({ public_key_pem }: { public_key_pem: string }) => public_key_pem,
  );
  verifyWithSigstore(bundle.sigstore_bundle, readJson('trusted_root.json'), keys);
}

async function demo(): Promise<void> {
  say('starting the service');
  const service = await startUp(at('data'));
  try {
    const data = ['--data-dir', at('data')];
    say(`submitting ${FILES.length} files and waiting for their witnesses`);
    const ids = attest('submit', ...FILES, '--wait', '--quiet', ...data)
      .trim()
      .split('\n');
    if (ids.length !== FILES.length) throw new Error(`${FILES.length} files gave ${ids.length} submissions`);
    say('fetching the bundles and the trust roots');
    for (const [i, id] of ids.entries()) attest('bundle', id, '--wait', '-o', at(`${i}.bundle`), ...data);
    for (const name of ['trust_roots.json', 'trusted_root.json'])
      await download(`${service.verifyUrl}/${name}`, name);
  } finally {
    say('stopping the service');
    await service.stop();
  }
  const expected = ['--project', readJson('data/credentials.json').project_id];
  const trusted = ['--trust-roots', at('trust_roots.json')];
  for (const [i, file] of FILES.entries()) {
    say(`verifying ${file} offline`);
    console.log(attest('verify', file, '--bundle', at(`${i}.bundle`), ...expected, ...trusted));
    verifyWithForeignTools(`${i}.bundle`);
    console.log("openssl accepts the time stamp; Sigstore's verifier accepts the Sigstore bundle");
  }
}

try {
  await demo();
  say('done: everything verified with the service stopped');
} catch (error) {
  console.error(`the demo failed: ${(error as Error).message}`);
  process.exitCode = 1;
} finally {
  rmSync(dir, { recursive: true, force: true });
}
