/** COSE receipts, for scitt-cose of PyPI. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from './command.js';
import { accepting, type Row, refusing } from './rows.js';
import type { Scene } from './scene.js';
import { PYTHON } from './tools.js';

/** A receipt over the batch's checkpoint, and what is wrong with it. */
export async function checkReceipts({ dir, service, apiKey, bundle }: Scene): Promise<Row[]> {
  const [entry] = bundle.sigstore_bundle.verificationMaterial.tlogEntries;
  const leaf = Buffer.from(entry?.canonicalizedBody ?? '', 'base64');
  const roots = JSON.parse(await readFile(join(dir, 'trust_roots.json'), 'utf8'));
  const keyOf = (of: string) =>
    roots.transparency_logs.find(({ environment }: { environment: string }) => environment === of)
      .receipt_public_key_pem;
  const receipt = await fetchReceipt(service.baseUrl, apiKey, bundle.submission.id);
  const folder = join(dir, 'receipt');
  await mkdir(folder);
  const read = async (bytes: Uint8Array, entry: Uint8Array, key: string) => {
    await writeFile(join(folder, 'bundle.cose'), bytes);
    await writeFile(join(folder, 'receipt.pem'), key);
    const hex = Buffer.from(entry).toString('hex');
    const args = ['--receipt', 'bundle.cose', '--receipt-log-pubkey', 'receipt.pem', '--leaf-entry-hex', hex];
    return run(join(PYTHON, 'bin/scitt-cose'), args, { cwd: folder });
  };
  const changed = Uint8Array.from(receipt);
  changed[changed.length - 1]! ^= 1;
  return [
    accepting('scitt-cose', 'a receipt', await read(receipt, leaf, keyOf('live')), [/ok +: True/]),
    refusing(
      'scitt-cose',
      'a receipt, of another leaf',
      await read(receipt, Buffer.from('x'), keyOf('live')),
    ),
    refusing('scitt-cose', 'a receipt, another key', await read(receipt, leaf, keyOf('test'))),
    refusing('scitt-cose', 'a receipt with a changed byte', await read(changed, leaf, keyOf('live'))),
  ];
}

async function fetchReceipt(baseUrl: string, apiKey: string, id: string): Promise<Uint8Array> {
  const headers = { authorization: `Bearer ${apiKey}` };
  const answer = await fetch(`${baseUrl}/v1/attestations/${id}/bundle.cose`, { headers });
  if (!answer.ok) throw new Error(`there is no receipt: ${await answer.text()}`);
  return new Uint8Array(await answer.arrayBuffer());
}
