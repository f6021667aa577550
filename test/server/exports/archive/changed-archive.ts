/** An archive, copies of it that a test changes, and their import. */
import { createHash } from 'node:crypto';
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Test } from 'tap';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { fromUtf8 } from '../../../../src/proof/bytes/encoding.js';
import { jcsBytes } from '../../../../src/proof/bytes/jcs.js';
import { manifestStatement } from '../../../../src/proof/export/manifest.js';
import type { ManifestObject } from '../../../../src/proof/export/manifest-fields.js';
import { readManifest, readManifestEnvelope } from '../../../../src/proof/export/read-manifest.js';
import { openLogCache } from '../../../../src/server/log/log-cache.js';
import { createManifestSigner } from '../../../../src/server/process/worker/manifest-signing.js';
import {
  type Installation,
  makeSource,
  ORIGIN,
  startTarget,
} from '../../../support/archives/archived-log.js';

export type Json = Record<string, unknown>;
export type Line = { submission: Json; bundle: Json; row: Json & { statement?: Json }; batch?: Json };

export type Copy = Awaited<ReturnType<typeof copyOf>>;

/** What is changed in the statement of a record, log.json. */
type RecordChange = (statement: Json) => Promise<void> | void;

type Signer = ReturnType<typeof createManifestSigner>;

/** Archives a log, and starts the database that copies of the archive are imported into. */
export async function openArchive(t: Test) {
  const source = await makeSource(t);
  const { app } = source;
  const whole = join(t.testdir(), 'archive');
  await source.run('log', 'archive', ORIGIN, '--to', whole);
  const target = await startTarget(t, source);
  const signer = createManifestSigner(app.pool, await openLogCache(app.pool), app.config.secrets.dsse);
  t.teardown(signer.close);
  return {
    app,
    target,
    copyOf: (t: Test) => copyOf(t, whole),
    assertRejected: (t: Test, copy: Copy, stderr: RegExp) => assertRejected(t, target, copy, stderr),
    signAgain: (copy: Copy) => signAgain(signer, copy),
    changeRecord: (copy: Copy, change: RecordChange) => changeRecord(signer, copy, change),
  };
}

/** A copy of the archive, and its files. */
async function copyOf(t: Test, whole: string) {
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

/** Imports a copy. It must fail for this reason, and leave nothing. */
async function assertRejected(
  t: Test,
  target: Installation,
  { folder }: Copy,
  stderr: RegExp,
): Promise<void> {
  t.match(await target.run('log', 'import', ORIGIN, '--from', folder), { code: 1, stderr });
  const rows = await target.app.pool`
    SELECT FROM submission UNION ALL SELECT FROM batch UNION ALL SELECT FROM tile UNION ALL SELECT FROM project
    UNION ALL SELECT FROM log WHERE frozen_reason LIKE '%imported%'`;
  t.equal(rows.length, 0, 'nothing is left');
}

/** Signs the manifests and the record again, as somebody could who has the DSSE key. */
async function signAgain(signer: Signer, copy: Copy): Promise<void> {
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
  await changeRecord(signer, copy, async (record) => {
    for (const subject of record.subject as { name: string; digest: Json }[]) {
      const path = copy.manifests.find((one) => one.endsWith(subject.name)) ?? '';
      subject.digest.sha256 = createHash('sha256')
        .update(await readFile(path))
        .digest('hex');
    }
  });
}

async function changeRecord(signer: Signer, { record }: Copy, change: RecordChange): Promise<void> {
  const statement = JSON.parse(fromUtf8(readManifestEnvelope(await readFile(record)).statement)) as Json;
  await change(statement);
  await writeFile(record, await signer.signStatement(Environment.LIVE, jcsBytes(statement as never)));
}

/** Changes the lines of an object. */
export async function changeLines(path: string, change: (lines: Line[]) => void): Promise<void> {
  const lines = gunzipSync(await readFile(path))
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
  change(lines);
  await writeFile(path, gzipSync(`${lines.map((line) => JSON.stringify(line)).join('\n')}\n`));
}

/** The first line of an object. */
export const first = ([line]: Line[]): Line => line as Line;
