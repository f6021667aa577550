/** A manifest of an export, for the shell lines of docs/verifying.md. */
import { generateKeyPairSync } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { toPem } from '../../src/proof/asn1/pem.js';
import { describeObject, makeBatches, objectBytes } from '../proof/export/export-sample.js';
import { manifestFields, signManifest } from '../proof/export/manifest-sample.js';
import { makeService } from '../proof/sample.js';
import { codeBlocks } from '../support/source/pages.js';
import { accepting, type Row, refusing } from './rows.js';
import { CHECKOUT, paste } from './tools.js';

/** The lines that verify a manifest and its objects with jq, openssl and sha256sum, and with cosign. */
export async function checkManifest({ dir }: { dir: string }): Promise<Row[]> {
  const [, lines = '', cosignLine = ''] = await codeBlocks(join(CHECKOUT, 'docs/verifying.md'), 'sh');
  const folder = join(dir, 'export');
  await mkdir(folder);
  const service = await makeService(join(folder, 'service'));
  const [batch] = await makeBatches(service, [{ own: 2 }]);
  if (batch === undefined) throw new Error('there is no batch');
  const bytes = objectBytes(batch.lines);
  const object = describeObject(batch, bytes);
  const logs = [{ origin: service.origin, start: 0, from: 0, to: batch.treeSize }];
  await writeFile(join(folder, object.name), bytes);
  await writeFile(
    join(folder, 'manifest.json'),
    signManifest(service, manifestFields({ objects: [object], logs })),
  );
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey;
  await writeFile(join(folder, 'other.pem'), other.export({ type: 'spki', format: 'pem' }));
  await writeFile(join(folder, 'dsse.pem'), toPem('PUBLIC KEY', service.dsse.publicKey));
  const cosign = cosignLine.replace('btc_….jsonl', object.name);
  const good = await paste(lines, folder);
  const goodByCosign = await paste(cosign, folder);
  const otherKey = await paste(cosign.replace('dsse.pem', 'other.pem'), folder);
  await writeFile(join(folder, object.name), bytes.slice(0, -1));
  return [
    accepting('docs', 'jq, openssl and sha256sum, a manifest', good, [/^Verified OK$/m, /\.jsonl: OK$/m]),
    refusing('docs', 'the same, an object cut off', await paste(lines, folder)),
    accepting('cosign', 'a manifest', goodByCosign, [/^Verified OK$/m]),
    refusing('cosign', 'a manifest, another key', otherKey),
    refusing('cosign', 'a manifest, an object cut off', await paste(cosign, folder)),
  ];
}
