import t from 'tap';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { createBundleReader } from '../../../../src/server/attestations/bundles/bundles.js';
import { findSubmissions } from '../../../../src/server/attestations/submissions/submissions.js';
import type { Principal } from '../../../../src/server/core/principal.js';
import { openLogCache } from '../../../../src/server/log/log-cache.js';
import { startApp } from '../../../support/app.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { submitWitnessed } from '../../rpc/submitting.js';

const app = await startApp(t);
const owner = await newKey(app);

t.test('a bundle is cached the second time that it is read', async (t) => {
  const { id } = await submitWitnessed(app, owner);
  const [row] = await findSubmissions(app.pool, [id]);
  if (row === undefined) throw new Error(`${id} is missing`);
  const reader = createBundleReader({ pool: app.pool, logCache: await openLogCache(app.pool) });
  const caller = { projectId: owner.projectId, environment: Environment.LIVE } as Principal;

  const first = await reader.read(row);
  t.notOk(first.isCached);
  t.equal(await reader.findCached(id, caller), undefined);

  const second = await reader.read(row);
  t.ok(second.isCached);
  t.not(second, first);
  t.same(second.json(), first.json(), 'the same bytes and tag');
  t.equal(await reader.read(row), second);
  t.equal(await reader.findCached(id, caller), second);
  for (const other of [{ projectId: 'prj_other' }, { environment: Environment.TEST as const }])
    t.equal(await reader.findCached(id, { ...caller, ...other }), undefined, 'not for others');
});
