/** A downloaded export of three days, and how to verify it. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import type { ManifestFields, ManifestObject } from '../../../src/proof/export/manifest-fields.js';
import { type Batch, describeObject, makeBatches, objectBytes } from '../../proof/export/export-sample.js';
import { EXPORT_ID, manifestFields, signManifest } from '../../proof/export/manifest-sample.js';
import { makeService, NOW } from '../../proof/sample.js';
import { rootsOf } from '../../proof/verifying.js';
import { runHere } from '../../support/calling/run-cli.js';

export const OTHER_PROJECT = 'prj_01JX5WQ0ZZZZZZZZZZZZZZZZZ0';
export const service = await makeService(t.testdir());
const batches = await makeBatches(service, [
  { own: 3, others: 4 },
  { own: 1000, others: 50 },
  { own: 0, others: 10 },
  { own: 2 },
  { own: 1, others: 1 },
  { own: 1, project: OTHER_PROJECT },
]);
export const [first, large, , third, fourth, foreign] = batches as [Batch, Batch, Batch, Batch, Batch, Batch];

/** The days of the export: the batches of each, and where its range of the log begins. */
const DAYS: [day: string, from: number, batches: Batch[]][] = [
  ['2025-06-06', 0, [first, large]],
  ['2025-06-07', large.treeSize, [third]],
  ['2025-06-08', third.treeSize, [fourth]],
];

/** The folder of a day's files. */
export function folderOf(day: string): string {
  return `attestations/${EXPORT_ID}/live/${day.replaceAll('-', '/')}`;
}

/** Paths in the download. */
export const PATHS = {
  first: `${folderOf('2025-06-06')}/${first.id}.jsonl`,
  large: `${folderOf('2025-06-06')}/${large.id}.jsonl`,
  third: `${folderOf('2025-06-07')}/${third.id}.jsonl`,
  fourth: `${folderOf('2025-06-08')}/${fourth.id}.jsonl`,
  manifest: `${folderOf('2025-06-07')}/manifest.json`,
};

/** The fields of a day's manifest, days counted from 0; the last day is not over. */
export function dayFields(index: number, objects: ManifestObject[]): ManifestFields {
  const [day, from, own] = DAYS[index]!;
  const logs = [{ origin: service.origin, start: 0, from, to: own.at(-1)!.treeSize }];
  return manifestFields({ day, objects, logs, isComplete: index < DAYS.length - 1 });
}

/** A downloaded export. */
export type Download = Awaited<ReturnType<typeof download>>;

/** Writes the export as downloaded; without the large batch unless wanted. */
export async function download(
  t: Test,
  { ending = '.jsonl', hasLarge = false }: { ending?: '.jsonl' | '.jsonl.gz'; hasLarge?: boolean } = {},
) {
  const dir = t.testdir({ 'roots.json': JSON.stringify(rootsOf(service)), root: {} });
  const root = join(dir, 'root');
  const write = async (path: string, bytes: string | Uint8Array) => {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), bytes);
  };
  for (const [i, [day, , own]] of DAYS.entries()) {
    const objects: ManifestObject[] = [];
    for (const batch of own.filter((one) => hasLarge || one !== large)) {
      const bytes = ending === '.jsonl' ? objectBytes(batch.lines) : gzipSync(objectBytes(batch.lines));
      objects.push(describeObject(batch, bytes, ending));
      await write(`${folderOf(day)}/${batch.id}${ending}`, bytes);
    }
    await write(`${folderOf(day)}/manifest.json`, signManifest(service, dayFields(i, objects)));
  }
  const roots = ['--trust-roots', join(dir, 'roots.json')];
  const args = (path = '') => ['verify', '--export', join(root, path), ...roots];
  const verify = (path = '', ...flags: string[]) => runHere([...args(path), ...flags], { now: () => NOW });
  return { root, write, args, verify, at: (path: string) => join(root, path) };
}
