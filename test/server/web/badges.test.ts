/** Badges under load: verifying bundles must not keep the API from answering. */
import { create } from '@bufbuild/protobuf';
import Fastify from 'fastify';
import t, { type Test } from 'tap';
import { TrustRootsSchema } from '../../../gen/attestation/v1/service_pb.js';
import { tellPeers } from '../../../src/server/core/http/request-peer.js';
import { badgeRoutes } from '../../../src/server/web/badge-routes.js';

const MOST = 51;

/** Badges whose bundles are read once `all` have been asked for. */
function openBadges(t: Test, all: number) {
  const app = Fastify();
  t.teardown(() => app.close());
  tellPeers(app, ({ ip }) => ip);
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let waiting = 0;
  const trustRoots = { json: () => ({ bytes: Buffer.from('{}') }), message: () => create(TrustRootsSchema) };
  badgeRoutes(
    app,
    {
      readPublicBundle: async (id) => {
        if (++waiting === all) release();
        await released;
        return { bytes: Buffer.from(id) };
      },
      readTrustRoots: async () => trustRoots,
      now: () => new Date(),
    },
    '/verify',
  );
  return (name: string, remoteAddress = '192.0.2.1') =>
    app.inject({ url: `/verify/badge/${name}.svg`, remoteAddress });
}

t.test('one badge is made at a time, some wait, and more are turned away', async (t) => {
  const all = 60;
  const get = openBadges(t, all);
  const answers = await Promise.all(Array.from({ length: all }, (_, i) => get(`bundle-${i}`)));
  const made = answers.filter(({ statusCode }) => statusCode === 200);
  t.equal(made.length, MOST);
  for (const { body } of made) t.match(body, />not verified</);
  t.match(answers.find(({ statusCode }) => statusCode !== 200)?.body, /too many badges/);
  t.equal((await get('bundle-0')).statusCode, 200, 'and then as before');
});

t.test('an address that asks for many badges leaves room for another', async (t) => {
  const many = 64;
  const get = openBadges(t, many + 1);
  const greedy = Array.from({ length: many }, (_, i) => get(`bundle-${i}`));
  const other = get('other', '192.0.2.2');
  t.equal((await other).statusCode, 200);
  t.equal((await Promise.all(greedy)).filter(({ statusCode }) => statusCode === 200).length, MOST - 1);
});
