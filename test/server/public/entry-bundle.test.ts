/** Entry bundles are rebuilt from rows of every kind as their leaves were hashed. */
import { createHash, generateKeyPairSync } from 'node:crypto';
import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { toHex } from '../../../src/proof/bytes/encoding.js';
import { decodeEntries } from '../../../src/proof/log/entries.js';
import { leafHash } from '../../../src/proof/log/merkle.js';
import { rebuildLeaf } from '../../../src/proof/statement/leaf.js';
import { statementBytes } from '../../../src/proof/statement/statement.js';
import { environmentName } from '../../../src/protocol/environment.js';
import { openLogCache } from '../../../src/server/log/log-cache.js';
import type { DsseKey } from '../../../src/server/log/store/dsse-keys.js';
import type { Log } from '../../../src/server/log/store/logs.js';
import { readEntryBundle } from '../../../src/server/public/entry-bundle.js';
import { startApp } from '../../support/app.js';

const { pool } = await startApp(t);
const LEAVES = 300;
const SCHEMAS = [
  'purl',
  'purl',
  'ünïcode 💣',
  '"sample id 1"',
  'a\\b\u2028\u007f\u0001\t',
  'sample schema 1',
  '@',
];
const PROJECTS = ['prj_1', 'prj_1', 'prj_1', 'prj_é', 'sample project 1', 'prj_"2"', 'prj_2'];
const IDS = ['sub_', 'sub_', 'sub_', 'sub_longer_', 'sub_é', 'sub_💣_'];
const TIMES = [1_795_374_000_123, 1_795_374_000_999, 1_795_374_001_000, 0, 999, 253_402_300_799_999, -1];
const SIGNATURE_BYTES = [70, 71, 72, 72, 8, 200, 57];

const bytes = (of: string, length = 32) =>
  Buffer.concat(Array.from({ length: Math.ceil(length / 32) }, (_, i) => digest(`${of} ${i}`))).subarray(
    0,
    length,
  );
const digest = (of: string) => createHash('sha256').update(of).digest();
const at = <T>(values: readonly T[], i: number, stride: number): T =>
  values[Math.floor(i / stride) % values.length] as T;

for (const environment of [Environment.LIVE, Environment.TEST]) {
  await pool`
    INSERT INTO dsse_key (environment, spki) VALUES (${environment}, ${newSpki()}), (${environment}, ${newSpki()})`;
}
for (const project of new Set(PROJECTS))
  await pool`INSERT INTO project (id, name) VALUES (${project}, ${project})`;
const logCache = await openLogCache(pool);
const keys = await logCache.dsseKeys.get(0);

function newSpki(): Buffer {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return publicKey.export({ type: 'spki', format: 'der' });
}

/** The row of a leaf, with the hash that its submitter was told. Strides let each value meet each other and itself. */
function rowOf({ id: logId, environment }: Log, { id: dsseKeyId, spki }: DsseKey, i: number) {
  const attested = i % 5 === 0 ? at(SCHEMAS, i, 4) : null;
  const schema = at(SCHEMAS, i, 3);
  const project = at(PROJECTS, i, 2);
  const id = `${at(IDS, i, 1)}${environment}_${i}`;
  const [artifact, commitment] = [bytes(`artifact ${i}`), bytes(`commitment ${i}`)];
  const submittedAtMs = at(TIMES, i, 1);
  const signature = bytes(`signature ${i}`, at(SIGNATURE_BYTES, i, 1));
  const statement = statementBytes({
    artifactSha256: toHex(artifact),
    submissionId: id,
    project,
    submittedAt: new Date(submittedAtMs).toISOString(),
    environment: environmentName(environment),
    schema: attested ?? schema,
    commitment: toHex(commitment),
  });
  return {
    log_id: logId,
    log_index: i,
    id,
    project_id: project,
    submitted_at: new Date(submittedAtMs),
    artifact_sha256: artifact,
    schema,
    metadata: i % 3 === 0 ? null : '{"schema":"purl"}',
    metadata_state: 1,
    attested_schema: attested,
    salt: i % 3 === 0 ? null : bytes('salt'),
    commitment,
    dsse_key_id: dsseKeyId,
    signature,
    leaf_hash: rebuildLeaf(statement, signature, spki).hash,
  };
}

const read = (log: Log, first: number, end: number) => readEntryBundle(pool, logCache, log, first, end);
const hashesOf = (bundle: Uint8Array) => decodeEntries(bundle).map((record) => toHex(leafHash(record)));

for (const log of logCache.allLogs()) {
  const name = environmentName(log.environment);
  t.test(`every kind of row of ${name} becomes the leaf that was hashed`, async (t) => {
    const own = keys.filter(({ environment }) => environment === log.environment);
    t.ok(own.length >= 2, 'keys change inside a bundle');
    const rows = Array.from({ length: LEAVES }, (_, i) => rowOf(log, at(own, i, 7) as DsseKey, i));
    await pool`INSERT INTO submission ${pool(rows)}`;
    const told = rows.map(({ leaf_hash }) => toHex(leaf_hash));
    for (const [first, end] of [
      [0, 256],
      [256, LEAVES],
      [0, 255],
      [0, 1],
    ] as const)
      t.same(hashesOf((await read(log, first, end)).bytes), told.slice(first, end), `[${first}, ${end})`);
    for (let i = 0; i < LEAVES; i++) {
      const [hash] = hashesOf((await read(log, i, i + 1)).bytes);
      if (hash !== told[i]) t.same({ ...rows[i], hash }, rows[i]);
    }
  });
}

t.test('a bundle has an entity tag of its own', async (t) => {
  const [log, other] = logCache.allLogs() as [Log, Log];
  const { etag } = await read(log, 0, 256);
  t.equal((await read(log, 0, 256)).etag, etag, 'read again');
  const tags = [etag];
  for (const [of, first, end] of [
    [log, 0, 255],
    [log, 1, 256],
    [other, 0, 256],
  ] as const)
    tags.push((await read(of, first, end)).etag);
  const changes = {
    signature: bytes('another'),
    artifact_sha256: bytes('another'),
    dsse_key_id: keys.findLast(({ environment }) => environment === other.environment)?.id,
  };
  for (const [column, value] of Object.entries(changes)) {
    await pool`UPDATE submission SET ${pool({ [column]: value })} WHERE log_id = ${log.id} AND log_index = 100`;
    tags.push((await read(log, 0, 256)).etag);
  }
  t.equal(new Set(tags).size, tags.length);
});

t.test(
  'a bundle is not made of fewer rows than it should have, nor of values that run together',
  async (t) => {
    const [log] = logCache.allLogs() as [Log];
    const remove = (i: number) => pool`DELETE FROM submission WHERE log_id = ${log.id} AND log_index = ${i}`;
    await remove(LEAVES - 1);
    await t.rejects(read(log, 256, LEAVES), /has only 43 of the entries 256 to 300/);
    t.equal(hashesOf((await read(log, 256, LEAVES - 1)).bytes).length, 43);
    await pool`UPDATE submission SET schema = ${'a\nb'}, attested_schema = NULL WHERE log_id = ${log.id} AND log_index = 3`;
    await t.rejects(read(log, 0, 256), /the columns of 256 leaves have the lengths 256,256,257/);
    await remove(3);
    await t.rejects(read(log, 0, 256), /has only 255 of the entries 0 to 256/);
    await t.rejects(read(log, 1_000, 1_001), /has only 0 of the entries/);
  },
);
