/** Archives that somebody changed or damaged, objects and manifests: none is imported, and nothing of one is left. */
import { readFile, rm, writeFile } from 'node:fs/promises';
import t from 'tap';
import { manifestEnvelope } from '../../../../src/proof/export/manifest.js';
import { readManifestEnvelope } from '../../../../src/proof/export/read-manifest.js';
import { type Copy, changeLines, first, openArchive } from './changed-archive.js';

const { copyOf, assertRejected } = await openArchive(t);

t.test('objects that are not those of the manifest', async (t) => {
  const cases: Record<string, [(copy: Copy) => Promise<unknown>, RegExp]> = {
    'a changed line': [
      ({ objects }) =>
        changeLines(objects[0] ?? '', (l) => {
          first(l).row.build = 'x';
        }),
      /not those that its manifest lists/,
    ],
    'a missing object': [({ objects }) => rm(objects[1] ?? ''), /is missing/],
    'a truncated object': [
      async ({ objects: [path = ''] }) => writeFile(path, (await readFile(path)).subarray(0, 2_000)),
      /not a whole gzip file/,
    ],
    'bytes after the end': [
      async ({ objects: [path = ''] }) =>
        writeFile(path, Buffer.concat([await readFile(path), Buffer.from('x')])),
      /not a whole gzip file|after the end|not those/,
    ],
    "another object's bytes": [
      async ({ objects: [path = '', other = ''] }) => writeFile(path, await readFile(other)),
      /another one is in its place|no valid|not those/,
    ],
    'a changed manifest': [
      async ({ manifests: [path = ''] }) => writeFile(path, `${await readFile(path, 'utf8')} `),
      /not the one that log.json names/,
    ],
    'a missing manifest': [({ manifests }) => rm(manifests[0] ?? ''), /is missing/],
    'a missing record': [({ record }) => rm(record), /is not there/],
    'a record that is no JSON': [({ record }) => writeFile(record, '{'), /not JSON/],
    'a record of another signer': [
      async ({ record }) => {
        const { statement } = readManifestEnvelope(await readFile(record));
        await writeFile(record, manifestEnvelope(statement, new Uint8Array(70)));
      },
      /not signed by a DSSE key/,
    ],
  };
  for (const [name, [change, reason]] of Object.entries(cases))
    await t.test(name, async (t) => {
      const copy = await copyOf(t);
      await change(copy);
      await assertRejected(t, copy, reason);
    });
});
