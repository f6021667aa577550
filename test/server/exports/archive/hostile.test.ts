/** Archives that somebody changed, damaged or made up: none is imported, and nothing of one is left. */

import { createHash } from 'node:crypto';
import { cp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { fromUtf8 } from '../../../../src/proof/bytes/encoding.js';
import { jcsBytes } from '../../../../src/proof/bytes/jcs.js';
import { manifestEnvelope, manifestStatement } from '../../../../src/proof/export/manifest.js';
import type { ManifestObject } from '../../../../src/proof/export/manifest-fields.js';
import { readManifest, readManifestEnvelope } from '../../../../src/proof/export/read-manifest.js';
import { openLogCache } from '../../../../src/server/log/log-cache.js';
import { createManifestSigner } from '../../../../src/server/process/worker/manifest-signing.js';
import { makeSource, ORIGIN, startTarget } from '../../../support/archives/archived-log.js';

const source = await makeSource(t);
const { app } = source;
const whole = join(t.testdir(), 'archive');
await source.run('log', 'archive', ORIGIN, '--to', whole);
const target = await startTarget(t, source);
const signer = createManifestSigner(app.pool, await openLogCache(app.pool), app.config.secrets.dsse);
t.teardown(signer.close);

type Json = Record<string, unknown>;
type Line = { submission: Json; bundle: Json; row: Json & { statement?: Json }; batch?: Json };

/** A copy of the archive, and its files. */
async function copyOf(t: Test) {
  const folder = join(t.testdir(), 'archive');
  await cp(whole, folder, { recursive: true });
  const files = (await readdir(folder, { recursive: true })).map((name) => join(folder, name));
  const find = (ending: string) => files.filter((path) => path.endsWith(ending)).sort();
  return {
    folder,
    objects: find('.gz'),
    manifests: find('manifest.json'),
    record: find('log.json')[0] ?? '',
  };
}

type Copy = Awaited<ReturnType<typeof copyOf>>;

/** Imports a copy. It must fail for this reason, and leave nothing. */
async function assertRejected(t: Test, { folder }: Copy, stderr: RegExp): Promise<void> {
  t.match(await target.run('log', 'import', ORIGIN, '--from', folder), { code: 1, stderr });
  const rows = await target.app.pool`
    SELECT FROM submission UNION ALL SELECT FROM batch UNION ALL SELECT FROM tile UNION ALL SELECT FROM project
    UNION ALL SELECT FROM log WHERE frozen_reason LIKE '%imported%'`;
  t.equal(rows.length, 0, 'nothing is left');
}

/** Signs the manifests and the record again, as somebody could who has the DSSE key. */
async function signAgain(copy: Copy): Promise<void> {
  for (const path of copy.manifests) {
    const { fields } = readManifest(await readFile(path));
    const objects: ManifestObject[] = [];
    for (const object of fields.objects) {
      const bytes = await readFile(join(path, '..', object.name)).catch(() => undefined);
      const changed = bytes && {
        bytes: bytes.length,
        sha256: createHash('sha256').update(bytes).digest('hex'),
      };
      objects.push({ ...object, ...changed });
    }
    const statement = manifestStatement({ ...fields, objects });
    await writeFile(path, await signer.signStatement(Environment.LIVE, statement));
  }
  await changeRecord(copy, async (record) => {
    for (const subject of record.subject as { name: string; digest: Json }[]) {
      const path = copy.manifests.find((one) => one.endsWith(subject.name)) ?? '';
      subject.digest.sha256 = createHash('sha256')
        .update(await readFile(path))
        .digest('hex');
    }
  });
}

async function changeRecord(
  { record }: Copy,
  change: (statement: Json) => Promise<void> | void,
): Promise<void> {
  const statement = JSON.parse(fromUtf8(readManifestEnvelope(await readFile(record)).statement)) as Json;
  await change(statement);
  await writeFile(record, await signer.signStatement(Environment.LIVE, jcsBytes(statement as never)));
}

/** Changes the lines of an object. */
async function changeLines(path: string, change: (lines: Line[]) => void): Promise<void> {
  const lines = gunzipSync(await readFile(path))
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
  change(lines);
  await writeFile(path, gzipSync(`${lines.map((line) => JSON.stringify(line)).join('\n')}\n`));
}

const first = ([line]: Line[]): Line => line as Line;

/** The object of the batch with all kinds of submissions. */
const largest = async ({ objects }: Copy): Promise<string> => {
  const sizes = await Promise.all(objects.map(async (path) => ({ path, size: (await stat(path)).size })));
  return sizes.sort((a, b) => b.size - a.size)[0]?.path ?? '';
};

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

t.test('lines that contradict the leaf, the batch or the log, with all signatures made anew', async (t) => {
  const row = (change: (row: Line['row']) => void) => (lines: Line[]) => change(first(lines).row);
  const cases: Record<string, [(lines: Line[]) => void, RegExp]> = {
    'an artifact': [
      row((r) => {
        r.artifact_sha256 = 'ab'.repeat(32);
      }),
      /its hash is not that/,
    ],
    'a time': [
      row((r) => {
        r.submitted_at = '2020-01-01T00:00:00.000000Z';
      }),
      /its hash is not that/,
    ],
    'a schema': [
      row((r) => {
        r.schema = 'other';
      }),
      /its hash is not that/,
    ],
    'a signature': [
      row((r) => {
        r.signature = 'ab'.repeat(70);
      }),
      /its hash is not that/,
    ],
    'a leaf hash': [
      row((r) => {
        r.leaf_hash = 'ab'.repeat(32);
      }),
      /its hash is not that/,
    ],
    metadata: [
      row((r) => {
        r.metadata = '{"purl":"pkg:npm/other@1"}';
      }),
      /not what was attested/,
    ],
    'an unknown project': [
      row((r) => {
        r.project = 'prj_01JX5WQ0ZZZZZZZZZZZZZZZZZ0';
      }),
      /project is not in log.json/,
    ],
    'an unknown key': [
      row((r) => {
        r.dsse_key = 'ab';
      }),
      /DSSE key is not in log.json/,
    ],
    'an id of another form': [
      row((r) => {
        r.id = "'; DROP TABLE submission";
      }),
      /no valid id/,
    ],
    'a text with a zero': [
      row((r) => {
        r.build = 'a\0b';
      }),
      /no valid build/,
    ],
    'a statement too many': [
      row((r) => {
        r.statement = {};
      }),
      /statement is missing, or is one too many/,
    ],
    'a changed statement': [
      (lines) => {
        const { statement } = lines.find((line) => line.row.statement?.text !== undefined)?.row ?? {};
        if (statement !== undefined) statement.text = String(statement.text).replace('live', 'test');
      },
      /not the one that was signed/,
    ],
    'no row': [(lines) => void delete (first(lines) as Partial<Line>).row, /not an object/],
    'a line twice': [(lines) => void lines.splice(1, 1, first(lines)), /another one is in its place/],
    'a line too few': [(lines) => void lines.pop(), /lines, not/],
    'a line too many': [(lines) => void lines.push(lines.at(-1) as Line), /more lines than/],
    'lines in another order': [(lines) => void lines.reverse(), /another one is in its place/],
    'no batch': [(lines) => void delete first(lines).batch, /not an object/],
    'another root': [
      (lines) => {
        (first(lines).batch as Json).root_hash = 'ab'.repeat(32);
      },
      /root is not that of its leaves/,
    ],
    'a note of nobody': [
      (lines) => {
        const batch = first(lines).batch as Json;
        batch.note = String(batch.note).replace(/\n— .*\n$/s, '\n— live.log.example.com AAAAAAAA\n');
      },
      /not signed|note|signature/,
    ],
    'evidence of another batch': [
      (lines) => {
        const batch = first(lines).batch as Json & { evidence: Json[] };
        if (batch.evidence[0] !== undefined) batch.evidence[0].tree_size = 10_000;
      },
      /of another batch/,
    ],
    'an oversized line': [
      row((r) => {
        r.build = 'x'.repeat(1024 * 1024);
      }),
      /longer than 1 MiB/,
    ],
  };
  for (const [name, [change, reason]] of Object.entries(cases))
    await t.test(name, async (t) => {
      const copy = await copyOf(t);
      await changeLines(await largest(copy), change);
      await signAgain(copy);
      await assertRejected(t, copy, reason);
    });
});

t.test('records that contradict the archive or the register, signed anew', async (t) => {
  const predicate = (change: (log: Json) => void) => (statement: Json) => change(statement.predicate as Json);
  const cases: Record<string, [(statement: Json) => void, RegExp]> = {
    'another size': [
      predicate((log) => {
        log.tree_size = 5;
      }),
      /leaves, and the log had 5/,
    ],
    'another origin': [
      predicate((log) => {
        log.origin = 'live.example.org';
      }),
      /is of another log/,
    ],
    'another key': [
      predicate((log) => {
        log.public_key = 'ab'.repeat(32);
      }),
      /has another key/,
    ],
    'another lane': [
      predicate((log) => {
        log.lane = 2;
      }),
      /no later epoch/,
    ],
    'a path outside': [
      (statement) => {
        (statement.subject as Json[])[0]!.name = '../../secrets/manifest.json';
      },
      /no valid name/,
    ],
    'no days': [
      (statement) => {
        statement.subject = [];
      },
      /has 0 leaves/,
    ],
    'a day twice': [
      (statement) => {
        const subject = statement.subject as Json[];
        statement.subject = [...subject, ...subject];
      },
      /not in order/,
    ],
    'another statement': [
      (statement) => {
        statement.predicateType = 'urn:x';
      },
      /not the record of an archived log/,
    ],
  };
  for (const [name, [change, reason]] of Object.entries(cases))
    await t.test(name, async (t) => {
      const copy = await copyOf(t);
      await changeRecord(copy, change);
      await assertRejected(t, copy, reason);
    });
});

t.test('an epoch that the register contradicts is a fork', async (t) => {
  const copy = await copyOf(t);
  const folder = join(app.register, `${ORIGIN}.checkpoint`);
  const [entry = ''] = await readdir(folder);
  const forked = entry.replace(/-[0-9a-f]{64}-/, `-${'07'.repeat(32)}-`);
  await rename(join(folder, entry), join(folder, forked));
  await assertRejected(t, copy, /contradicts the checkpoint register: .*another root/);
  await rename(join(folder, forked), join(folder, entry.replace(/^\d+/, '100')));
  await assertRejected(t, copy, /contradicts the checkpoint register: .*100/);
  await rename(join(folder, entry.replace(/^\d+/, '100')), join(folder, entry));
  t.match(await target.run('log', 'import', ORIGIN, '--from', copy.folder), { code: 0 });
});
