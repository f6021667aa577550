/** A pipeline with a store, and what must hold of what it has shipped. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Test } from 'tap';
import { verifyExportDirectory } from '../../../src/cli/verify-export/verify-export.js';
import { createLineVerifier } from '../../../src/proof/export/verify-line.js';
import { readTrust } from '../../../src/proof/verify/trust.js';
import type { Pool } from '../../../src/server/database/connect.js';
import { deriveKeyRing } from '../../../src/server/keys/key-ring.js';
import { makeProject } from '../../../src/server/process/first-keys.js';
import { createTrustRootsReader } from '../../../src/server/public/trust-roots.js';
import { drain, makeWitness, openPipeline, type TestPipelineOptions } from '../pipeline.js';
import { submitFor } from '../webhooks/webhooks.js';
import { linesOf, makeExport, objectsOf } from './exports.js';
import { BUCKET, startStore } from './s3/fixture.js';
import type { S3Server } from './s3/s3-server.js';

/** What the tests need of an export of the scene. */
export type SceneExport = { id: string; projectId: string; schema: string | null };

type Witnesses = Parameters<typeof openPipeline>[1];

/** Sets up a pipeline whose witness is required, and a store. */
export async function setExportScene(
  t: Test,
  options: Partial<TestPipelineOptions> & { witnesses?: Witnesses } = {},
) {
  const { witnesses = [await makeWitness(t, 'w')], ...more } = options;
  const test = await openPipeline(t, witnesses, more);
  const store = await startStore(t);
  const keys = deriveKeyRing(test.secretKeys, 'encryption');
  return {
    test,
    store,
    keys,
    witnesses,
    newProject: () => makeProject(test.pool, 'a project'),
    submit: async (projectId: string, count: number, isPublic = false) => {
      const ids = await submitFor(test, projectId, count, isPublic);
      await drain(test.pipeline);
      return ids;
    },
    exportOf: async (
      projectId: string,
      made: Partial<Parameters<typeof makeExport>[2]> = {},
    ): Promise<SceneExport> => {
      const id = await makeExport(test.pool, store, { projectId, keys, ...made });
      return { id, projectId, schema: made.schema ?? null };
    },
  };
}

/**
 * Asserts that the settled submissions that match the export are in its objects, each in one, that each line verifies, as far
 * as its statement is not erased, and that nothing of a redacted or erased one is left, nor an upload.
 */
export async function assertExported(
  t: Test,
  { pool, store }: { pool: Pool; store: S3Server },
  { id, projectId, schema }: SceneExport,
): Promise<void> {
  const rows = await pool<{ id: string; isRedacted: boolean; isErased: boolean }[]>`
    SELECT s.id, s.redacted_at IS NOT NULL AND (s.statement_version = 1 OR t.erased_at IS NOT NULL) AS "isRedacted",
           t.erased_at IS NOT NULL AS "isErased"
    FROM named_submission s
    LEFT JOIN submission_statement t ON t.log_id = s.log_id AND t.log_index = s.log_index
    JOIN export x ON x.id = ${id} JOIN log l ON l.id = s.log_id AND l.environment = x.environment
    JOIN batch b ON b.log_id = s.log_id AND b.first_index <= s.log_index AND b.tree_size > s.log_index AND b.status <> 1
    LEFT JOIN export_cursor k ON k.export_id = x.id AND k.log_id = s.log_id
    WHERE s.project_id = ${projectId} AND (${schema}::text IS NULL OR s.schema = ${schema})
      AND (x.start = 2 OR s.log_index >= coalesce(k.start_size, 0))`;
  const lines = await linesOf(store, id);
  t.same(
    lines.map(({ submission }) => submission.id).sort(),
    rows.map((row) => row.id).sort(),
    'each submission is in one object',
  );
  const verify = createLineVerifier({ trustRoots: await readTrustRoots(pool), now: new Date() });
  const verdicts = new Map<string, number>();
  for (const line of lines) {
    const { verdict, reason } = await verify(Buffer.from(JSON.stringify(line)));
    const isErased = rows.some((row) => row.isErased && row.id === line.submission.id);
    const isAsWanted =
      isErased && verdict === 'could_not_check' && /erased the signed statement/.test(reason);
    const key = isAsWanted ? 'verified' : `${verdict}${reason && `: ${reason}`}`;
    verdicts.set(key, (verdicts.get(key) ?? 0) + 1);
  }
  t.same([...verdicts], lines.length === 0 ? [] : [['verified', lines.length]]);
  const left = [...(await objectsOf(store, id)).values()].join('\n');
  const redacted = rows.filter(({ isRedacted }) => isRedacted);
  t.same(
    redacted.filter((row) => left.includes(row.id.toLowerCase())),
    [],
    'no redacted metadata',
  );
  t.equal(store.buckets.get(BUCKET)?.uploads.size, 0, 'no upload is left');
}

/** Verifies an export's objects and manifests as `attest verify --export` does. */
export async function verifyStored(t: Test, { pool, store }: { pool: Pool; store: S3Server }, id: string) {
  const directory = await mkdtemp(join(tmpdir(), 'attest-export-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  for (const [name, bytes] of await objectsOf(store, id)) {
    const path = join(directory, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, bytes);
  }
  const trustRoots = await readTrustRoots(pool);
  const { trust } = readTrust(trustRoots);
  if (trust === undefined) throw new Error('the trust roots cannot be read');
  const common = { environment: 'live' as const, now: new Date() };
  return verifyExportDirectory(directory, {
    lines: { trustRoots, ...common },
    manifests: { trust, ...common },
    onBytes: () => {},
  });
}

async function readTrustRoots(pool: Pool): Promise<unknown> {
  const reader = createTrustRootsReader(pool, () => 'http://localhost/verify', Date.now);
  return JSON.parse(String((await reader.read()).json().bytes));
}
