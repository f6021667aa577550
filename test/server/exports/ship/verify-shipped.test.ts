/** Manifests and lines fit what is shipped, as `attest verify --export` sees a download. */
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import t from 'tap';
import { ExportCompression, ExportStart } from '../../../../gen/attestation/v1/exports_pb.js';
import { redactMetadata } from '../../../../src/server/attestations/submissions/metadata.js';
import { deriveKeyRing } from '../../../../src/server/keys/key-ring.js';
import { makeProject } from '../../../../src/server/process/first-keys.js';
import { createTrustRootsReader } from '../../../../src/server/public/trust-roots.js';
import { letPass } from '../../../support/breaking/database-clock.js';
import { runHere } from '../../../support/calling/run-cli.js';
import { makeExport, objectsOf } from '../../../support/exports/exports.js';
import { startStore } from '../../../support/exports/s3/fixture.js';
import { drain, makeWitness, openPipeline } from '../../../support/pipeline.js';
import { submitFor } from '../../../support/webhooks/webhooks.js';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

const LAYOUTS = [
  { start: ExportStart.NOW, compression: ExportCompression.NONE, submissions: 7 },
  { start: ExportStart.BEGINNING, compression: ExportCompression.GZIP, submissions: 9 },
];

for (const { start, compression, submissions } of LAYOUTS) {
  t.test(
    `the manifests of three days list shipped objects without gaps, started ${ExportStart[start]}`,
    async (t) => {
      const test = await openPipeline(t, [await makeWitness(t, 'w', { required: true })]);
      const store = await startStore(t);
      const keys = deriveKeyRing(test.secretKeys, 'encryption');
      const projectId = await makeProject(test.pool, 'a project');
      const submit = async (count: number) => {
        const ids = await submitFor(test, projectId, count);
        await drain(test.pipeline);
        return ids;
      };
      await submit(2);
      const id = await makeExport(test.pool, store, { projectId, keys, start, compression });
      const [redacted = ''] = await submit(3);
      await submit(1);
      for (const count of [2, 1]) {
        await letPass(test, DAY_MS);
        await submit(count);
      }
      await test.pool.begin((tx) => redactMetadata(tx, redacted));
      await drain(test.pipeline);
      await letPass(test, DAY_MS);
      await drain(test.pipeline);

      const reader = createTrustRootsReader(test.pool, () => 'http://localhost/verify', Date.now);
      const dir = t.testdir({ 'roots.json': Buffer.from((await reader.read()).json().bytes) });
      const download = async () => {
        await rm(join(dir, 'root'), { recursive: true, force: true });
        for (const [name, bytes] of await objectsOf(store, id)) {
          const path = join(dir, 'root', name);
          await mkdir(dirname(path), { recursive: true });
          await writeFile(path, bytes);
        }
      };
      await download();
      const args = [
        'verify',
        '--export',
        join(dir, 'root'),
        '--trust-roots',
        join(dir, 'roots.json'),
        '--json',
      ];
      const now = () => new Date(Date.now() + 4 * DAY_MS);
      const { code, stdout } = await runHere([...args, '--project', projectId], { now });
      const found = JSON.parse(stdout);
      t.equal(code, 0);
      t.strictSame(found.problems, [], 'nothing is wrong with a line, an object or a manifest');
      t.match(found, {
        lines: { verified: submissions },
        manifests: 3,
        not_covered: { total: 0 },
        exports: [{ id, project: projectId, is_complete: true, logs: [{ gaps: { length: 0 } }] }],
      });
    },
  );
}
