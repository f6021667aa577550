import { Readable } from 'node:stream';
import t from 'tap';
import { request } from 'undici';
import { type ErrorCode, ErrorCodeSchema } from '../../../../gen/attestation/v1/errors_pb.js';
import { InfoService } from '../../../../gen/attestation/v1/service_pb.js';
import { errorRules } from '../../../../src/protocol/error-rules.js';
import { startApp } from '../../../support/app.js';
import { CONCISE_PROBLEM, restError } from '../../../support/calling/rest-error.js';
import { publicMethods } from '../../../support/calling/rpcs.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { type Hostile, hostileRequests, routesOf } from './hostile-requests.js';

const app = await startApp(t);
const owner = await newKey(app);
const surfaces = app.surfaces();
const routes = routesOf(await publicMethods());

/** The HTTP status of every dotted code. */
const STATUSES = new Map(
  ErrorCodeSchema.values
    .filter(({ number }) => number !== 0)
    .map(({ number }) => errorRules(number as ErrorCode))
    .map(({ code, httpStatus }) => [code, httpStatus]),
);

/** What is wrong with an answer; undefined when it is what the API documents. */
function problemOf(status: number, headers: Record<string, unknown>, body: Buffer): string | undefined {
  if (status < 400) return undefined;
  if (status >= 500) return `status ${status}: ${body}`;
  const type = headers['content-type'];
  if (type !== 'application/json' && type !== CONCISE_PROBLEM) return `an error of type ${type}`;
  const error = restError(type, body);
  if (STATUSES.get(String(error.code)) !== status) return `${error.code} with status ${status}`;
  if (typeof error.message !== 'string' || error.message === '') return 'no message';
  if (typeof error.details !== 'object') return 'no details';
  if (headers['x-request-id'] !== error.request_id) return 'two request ids';
  return undefined;
}

async function send({ method, path, headers = {}, body }: Hostile): Promise<string | undefined> {
  const answer = await request(app.baseUrl + path, {
    method: method as 'GET',
    headers: { authorization: `Bearer ${owner.key}`, ...headers },
    body: body ?? null,
  });
  const bytes = Buffer.from(await answer.body.arrayBuffer());
  app.recorder.answered(bytes.toString(), answer.statusCode >= 400);
  return problemOf(answer.statusCode, answer.headers, bytes);
}

async function assertAlive(t: Tap): Promise<void> {
  for (const { name, call } of surfaces) {
    t.equal((await call(InfoService.method.getHealth, {}, owner.key)).code, 'ok', `${name} is served`);
  }
}
type Tap = Pick<typeof t, 'equal'>;

for (const route of routes) {
  const { httpMethod, template } = route.binding;
  t.test(
    `${httpMethod} ${template.source} answers any request with a documented error or success`,
    async (t) => {
      const wrong: string[] = [];
      const requests = hostileRequests(route);
      for (let at = 0; at < requests.length; at += 16) {
        const some = requests.slice(at, at + 16);
        const problems = await Promise.all(some.map(send));
        for (const [i, problem] of problems.entries()) {
          if (problem !== undefined) wrong.push(`${some[i]?.what}: ${problem}`);
        }
      }
      t.ok(requests.length > 100);
      t.same(wrong.slice(0, 20), []);
      await assertAlive(t);
    },
  );
}

t.test('a body of more than 1 MiB is rejected on every route, announced or not', async (t) => {
  // A batch may have more: batch-create-hostile.test.ts.
  for (const { binding } of routes.filter(({ binding }) => !binding.template.source.endsWith(':batch'))) {
    const path = `/${binding.template.segments.map((s) => (s.kind === 'literal' ? s.text : 'x')).join('/')}`;
    const takesBody = binding.body !== '';
    for (const isAnnounced of [true, false]) {
      const chunk = Buffer.alloc(64 * 1024 + 1, ' ');
      const chunks = Array.from({ length: 16 }, () => chunk);
      const answer = await request(app.baseUrl + path, {
        method: binding.httpMethod as 'POST',
        headers: { authorization: `Bearer ${owner.key}`, 'content-type': 'application/json' },
        body: isAnnounced ? Buffer.concat(chunks) : Readable.from(chunks),
      });
      const bytes = Buffer.from(await answer.body.arrayBuffer());
      const what = `${binding.httpMethod} ${path}`;
      t.equal(answer.statusCode, takesBody ? 413 : 400, what);
      t.equal(
        restError(answer.headers['content-type'], bytes).code,
        takesBody ? 'request.too_large' : 'request.invalid',
        what,
      );
    }
  }
  await assertAlive(t);
});

t.test('nothing was stored by all that, and nothing secret was logged or answered', async (t) => {
  t.same(await app.pool`SELECT id FROM submission`, []);
  assertNoLeaks(t, app.recorder);
});
