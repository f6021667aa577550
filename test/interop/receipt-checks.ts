/** COSE receipts, for scitt-cose of PyPI. */
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decode } from 'cborg';
import { parseReceipt } from '../../src/proof/cose/receipt.js';
import { signedStatement } from '../support/scitt/signed-statement.js';
import { until } from '../support/until.js';
import { run, type Said } from './command.js';
import { accepting, type Row, refusing } from './rows.js';
import type { Bundle, Scene } from './scene.js';
import { PYTHON } from './tools.js';

/** A receipt over the batch's checkpoint, and what is wrong with it. */
export async function checkReceipts(scene: Scene): Promise<Row[]> {
  const { dir, service, apiKey, bundle } = scene;
  const leaf = leafOf(bundle);
  const [live, test] = [await readKey(dir, 'live'), await readKey(dir, 'test')];
  const receipt = await fetchReceipt(service.baseUrl, apiKey, bundle.submission.id);
  const folder = join(dir, 'receipt');
  await mkdir(folder);
  const read = async (bytes: Uint8Array, entry: Uint8Array, key: string) => {
    await writeFile(join(folder, 'bundle.cose'), bytes);
    return scittCose(folder, entry, key);
  };
  const changed = Uint8Array.from(receipt);
  changed[changed.length - 1]! ^= 1;
  return [
    accepting('scitt-cose', 'a receipt', await read(receipt, leaf, live), [/ok +: True/]),
    refusing('scitt-cose', 'a receipt, of another leaf', await read(receipt, Buffer.from('x'), live)),
    refusing('scitt-cose', 'a receipt, another key', await read(receipt, leaf, test)),
    refusing('scitt-cose', 'a receipt with a changed byte', await read(changed, leaf, live)),
    ...(await checkEntry(scene)),
  ];
}

/** What scitt-cose says of the `bundle.cose` in a folder, which has to be a receipt of the bundle's leaf in the live log. */
export async function readReceipt({ dir, bundle }: Scene, folder: string): Promise<Said> {
  return scittCose(folder, leafOf(bundle), await readKey(dir, 'live'));
}

async function scittCose(
  folder: string,
  leaf: Uint8Array,
  key: string,
  more: readonly string[] = [],
): Promise<Said> {
  await writeFile(join(folder, 'receipt.pem'), key);
  const hex = Buffer.from(leaf).toString('hex');
  const args = [
    '--receipt',
    'bundle.cose',
    '--receipt-log-pubkey',
    'receipt.pem',
    '--leaf-entry-hex',
    hex,
    ...more,
  ];
  return run(join(PYTHON, 'bin/scitt-cose'), args, { cwd: folder });
}

function leafOf({ sigstore_bundle }: Bundle): Uint8Array {
  const [entry] = sigstore_bundle.verificationMaterial.tlogEntries;
  return Buffer.from(entry?.canonicalizedBody ?? '', 'base64');
}

async function readKey(dir: string, of: string): Promise<string> {
  const roots = JSON.parse(await readFile(join(dir, 'trust_roots.json'), 'utf8'));
  const logs: { environment: string; receipt_public_key_pem: string }[] = roots.transparency_logs;
  return logs.find(({ environment }) => environment === of)?.receipt_public_key_pem ?? '';
}

/** A signed statement registered by SCRAPI: it, its receipt by a published key, and the leaf record of its bundle. */
async function checkEntry({ dir, service: { baseUrl }, apiKey }: Scene): Promise<Row[]> {
  const folder = join(dir, 'entry');
  await mkdir(folder);
  const { privateKey: key, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const statement = signedStatement({ key });
  await writeFile(join(folder, 'statement.cose'), statement);
  await writeFile(join(folder, 'issuer.pem'), publicKey.export({ type: 'spki', format: 'pem' }));
  const headers = { authorization: `Bearer ${apiKey}` };
  const sent = await fetch(`${baseUrl}/entries`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/cose' },
    body: Buffer.from(statement),
    redirect: 'manual',
  });
  const location = sent.headers.get('location') ?? '';
  const receipt = await until('the entry has a receipt', async () => {
    const answer = await fetch(baseUrl + location, { headers });
    return answer.status === 200 && new Uint8Array(await answer.arrayBuffer());
  });
  await writeFile(join(folder, 'bundle.cose'), receipt);
  const path = `/v1/attestations/${location.replace('/entries/', '')}/bundle`;
  const bundle = (await (await fetch(baseUrl + path, { headers })).json()) as Bundle;
  const logKey = await fetchCoseKey(baseUrl, parseReceipt(receipt).keyId);
  const read = (entry: Uint8Array) =>
    scittCose(folder, entry, logKey, ['--statement', 'statement.cose', '--statement-pubkey', 'issuer.pem']);
  return [
    accepting('scitt-cose', 'a statement and the receipt of its entry', await read(leafOf(bundle)), [
      /ok +: True/,
    ]),
    refusing('scitt-cose', 'the receipt of an entry, the statement as its leaf', await read(statement)),
  ];
}

/** The key of a receipt as PEM. */
async function fetchCoseKey(baseUrl: string, keyId: Uint8Array): Promise<string> {
  const kid = Buffer.from(keyId).toString('base64url');
  const answer = await fetch(`${baseUrl}/.well-known/scitt-keys/${kid}`);
  const key: Map<number, Uint8Array> = decode(new Uint8Array(await answer.arrayBuffer()), { useMaps: true });
  const [x, y] = [-2, -3].map((label) => Buffer.from(key.get(label) ?? []).toString('base64url'));
  const jwk = { kty: 'EC', crv: 'P-256', x: x!, y: y! };
  return createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' }).toString();
}

async function fetchReceipt(baseUrl: string, apiKey: string, id: string): Promise<Uint8Array> {
  const headers = { authorization: `Bearer ${apiKey}` };
  const answer = await fetch(`${baseUrl}/v1/attestations/${id}/bundle.cose`, { headers });
  if (!answer.ok) throw new Error(`there is no receipt: ${await answer.text()}`);
  return new Uint8Array(await answer.arrayBuffer());
}
