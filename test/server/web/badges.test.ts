/** Badges under load: verifying bundles must not keep the API from answering. */
import { create } from '@bufbuild/protobuf';
import Fastify from 'fastify';
import t from 'tap';
import { TrustRootsSchema } from '../../../gen/attestation/v1/service_pb.js';
import { badgeRoutes } from '../../../src/server/web/badge-routes.js';

const MOST = 51;

t.test('one badge is made at a time, some wait, and more are turned away', async (t) => {
  const app = Fastify();
  t.teardown(() => app.close());
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let waiting = 0;
  const all = 60;
  const trustRoots = { json: () => ({ bytes: Buffer.from('{}') }), message: () => create(TrustRootsSchema) };
  badgeRoutes(
    app,
    {
      readPublicBundle: async (id) => {
        if (++waiting === all) release();
        await released;
        return Buffer.from(id);
      },
      readTrustRoots: async () => trustRoots,
      now: () => new Date(),
    },
    '/verify',
  );
  const answers = await Promise.all(
    Array.from({ length: all }, (_, i) => app.inject(`/verify/badge/bundle-${i}.svg`)),
  );
  const made = answers.filter(({ statusCode }) => statusCode === 200);
  t.equal(made.length, MOST);
  for (const { body } of made) t.match(body, />not verified</);
  t.match(answers.find(({ statusCode }) => statusCode !== 200)?.body, /too many badges/);
  t.equal((await app.inject('/verify/badge/bundle-0.svg')).statusCode, 200, 'and then as before');
});
