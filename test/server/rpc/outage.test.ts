import { type DescMethodUnary, getOption } from '@bufbuild/protobuf';
import t from 'tap';
import { SessionService } from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { rules, SessionAccess } from '../../../gen/attestation/options/v1/options_pb.js';
import { startApp } from '../../support/app.js';
import { ADMIN_METHODS, adminOf } from '../../support/calling/admin.js';
import { publicMethods, rpcName } from '../../support/calling/rpcs.js';
import { newBrowser, newLink, signedIn } from '../../support/calling/sessions.js';
import { newKey } from '../../support/calling/test-keys.js';
import { trustedToken } from '../../support/identities/trusted-token.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { until } from '../../support/until.js';
import { type Known, makeChangeable, makeExports, makeWebhooks, NOTHING, sampleOf } from './samples.js';
import { submitWitnessed } from './submitting.js';

const app = await startApp(t, { isProxied: true });
const surfaces = app.surfaces();
const methods = await publicMethods();
const owner = await newKey(app);
/** What a call is answered with, or one that another has gone before: it did not get its answer, or had it elsewhere. */
const DONE = ['ok', 'webhook.not_found', 'submission.not_correctable'];
const MIRRORED = [
  'trust_roots.json',
  'trusted_root.json',
  'log/live/checkpoint',
  'log/live/tile/0/000.p/1',
  'log/live/tile/entries/000.p/1',
];

t.test(
  'every RPC returns service.unavailable without the database, and works again once it is back',
  async (t) => {
    const { id, artifactSha256 } = await submitWitnessed(app, owner);
    const { json } = await app.rest(`/v1/attestations/${id}`, { apiKey: owner.key });
    const [rest] = surfaces;
    if (rest === undefined) throw new Error('there is no REST surface');
    const known: Known = {
      artifactSha256,
      submissionId: id,
      batchId: String(json.batch_id),
      ...(await makeChangeable(rest, owner.key)),
      ...(await makeWebhooks(rest, owner.key)),
      ...(await makeExports(t, rest, owner.key)),
      token: await trustedToken(t, app, owner.projectId),
    };
    const unseen = await newKey(app, { projectId: owner.projectId });

    app.databaseProxy?.setOpen(false);
    app.databaseProxy?.cut();
    const refusals = methods.flatMap((method) =>
      surfaces.flatMap(({ name, call }) =>
        [owner, unseen].map(async ({ key }) => {
          const outcome = await call(method, sampleOf(method, known), key);
          return { what: `${rpcName(method)} by ${name}`, name, outcome };
        }),
      ),
    );
    for (const { what, name, outcome } of await Promise.all(refusals)) {
      // What a process remembers, it can still say, but not that it is well.
      if (outcome.code === 'ok' && !what.startsWith('InfoService/GetHealth')) continue;
      t.equal(outcome.code, 'service.unavailable', what);
      t.equal(name === 'REST' ? outcome.status : outcome.grpcCode, name === 'REST' ? 503 : 14);
      t.match(outcome.headers['retry-after'], /^[1-9]\d?$/, what);
    }
    for (const path of MIRRORED) {
      const { status, headers } = await app.rest(`/verify/${path}`);
      // Trust roots are remembered for a while, a log never.
      if (status === 200 && !path.startsWith('log/')) continue;
      t.equal(status, 503, path);
      t.match(headers['retry-after'], /^[1-9]\d?$/);
    }
    const wrong = await app.rest('/v1/attestations', { apiKey: 'svc_live_x' });
    t.equal(wrong.status, 401, 'what needs no database is answered all the same');

    app.databaseProxy?.setOpen(true);
    for (const method of methods) {
      for (const { name, call } of surfaces) {
        await until(`${rpcName(method)} by ${name} goes on`, async () => {
          const { code } = await call(method, sampleOf(method, known), owner.key);
          return DONE.includes(code);
        });
      }
    }
    for (const path of MIRRORED) t.equal((await app.rest(`/verify/${path}`)).status, 200, path);
  },
);

t.test(
  'so does every RPC that a session may call, to the sessions of a project and of the operator',
  async (t) => {
    const { getSession, signIn } = SessionService.method;
    const all = [...methods, ...ADMIN_METHODS, ...(SessionService.methods as DescMethodUnary[])];
    const allowed = [...new Set(all)].filter((method) => {
      const { session } = getOption(method, rules);
      return session === SessionAccess.PROJECT || session === SessionAccess.ANY;
    });
    t.ok(allowed.length > 20);
    const tenant = await signedIn(app, owner);
    const operator = newBrowser(app, { 'attest-project': owner.projectId });
    const byToken = { credential: { case: 'adminToken' as const, value: adminOf(app).token } };
    t.equal((await operator.signIn(byToken)).code, 'ok');
    const byLink = { credential: { case: 'link' as const, value: await newLink(app, owner.projectId) } };

    app.databaseProxy?.setOpen(false);
    app.databaseProxy?.cut();
    const refusals = [
      ...[tenant, operator].flatMap((browser) =>
        allowed.map(async (method) => ({
          what: rpcName(method),
          outcome: await browser.call(
            method,
            method.parent.typeName.startsWith('attestation.v1.') ? sampleOf(method, NOTHING) : {},
          ),
        })),
      ),
      ...[byToken, byLink].map(async (credential) => ({
        what: `${rpcName(signIn)} by ${credential.credential.case}`,
        outcome: await newBrowser(app).call(signIn, credential),
      })),
    ];
    for (const { what, outcome } of await Promise.all(refusals)) {
      t.match(outcome, { status: 503, code: 'service.unavailable' }, what);
      t.match(outcome.headers['retry-after'], /^[1-9]\d?$/, what);
    }

    app.databaseProxy?.setOpen(true);
    for (const browser of [tenant, operator])
      await until('the session goes on', async () => (await browser.call(getSession, {})).code === 'ok');
  },
);

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder, true);
});
