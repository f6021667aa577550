/** COSE receipts, for scitt-cose of PyPI. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run, type Said } from './command.js';
import { accepting, type Row, refusing } from './rows.js';
import type { Bundle, Scene } from './scene.js';
import { PYTHON } from './tools.js';

/** A receipt over the batch's checkpoint, and what is wrong with it. */
export async function checkReceipts({ dir, service, apiKey, bundle }: Scene): Promise<Row[]> {
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
  ];
}

/** What scitt-cose says of the `bundle.cose` in a folder, which has to be a receipt of the bundle's leaf in the live log. */
export async function readReceipt({ dir, bundle }: Scene, folder: string): Promise<Said> {
  return scittCose(folder, leafOf(bundle), await readKey(dir, 'live'));
}

async function scittCose(folder: string, leaf: Uint8Array, key: string): Promise<Said> {
  await writeFile(join(folder, 'receipt.pem'), key);
  const hex = Buffer.from(leaf).toString('hex');
  const args = ['--receipt', 'bundle.cose', '--receipt-log-pubkey', 'receipt.pem', '--leaf-entry-hex', hex];
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

async function fetchReceipt(baseUrl: string, apiKey: string, id: string): Promise<Uint8Array> {
  const headers = { authorization: `Bearer ${apiKey}` };
  const answer = await fetch(`${baseUrl}/v1/attestations/${id}/bundle.cose`, { headers });
  if (!answer.ok) throw new Error(`there is no receipt: ${await answer.text()}`);
  return new Uint8Array(await answer.arrayBuffer());
}
