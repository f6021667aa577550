import t, { type Test } from 'tap';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../../../gen/attestation/v1/batches_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { InfoService } from '../../../../gen/attestation/v1/service_pb.js';
import { errorRules } from '../../../../src/protocol/error-rules.js';
import { type Caller, callers, type Outcome } from '../../../support/calling/surfaces.js';
import { KEYS, NOW_MS, SECRET_FAILURE, startApiServer } from '../../../support/servers/api-server.js';

const { getHealth } = InfoService.method;
const { getBatch, listBatches } = BatchService.method;
const { createAttestation } = AttestationService.method;
const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
const NEW_SUBMISSION = {
  artifact: { sha256: 'ab'.repeat(32) },
  metadata: { schema: 'purl', purl: 'pkg:npm/a@1' },
};

/** Does the same on every surface. */
async function onEverySurface(t: Test, check: (t: Test, caller: Caller) => Promise<void>): Promise<void> {
  const { baseUrl } = await startApiServer(t);
  for (const caller of callers(baseUrl)) {
    await t.test(caller.name, async (t) => {
      t.teardown(caller.close);
      await check(t, caller);
      t.equal((await caller.call(getHealth, {}, bearer(KEYS.all))).code, 'ok', 'and the server lives on');
    });
  }
}

/** That an outcome is this error, in the form its surface has for it. */
function isError(t: Test, { isRest }: Caller, outcome: Outcome, code: ErrorCode): void {
  const rules = errorRules(code);
  t.equal(outcome.code, rules.code);
  if (isRest) t.equal(outcome.status, rules.httpStatus);
  else t.equal(outcome.grpcCode, rules.grpcCode);
  t.match(outcome.requestId, /^req_[0-9A-HJKMNP-TV-Z]{26}$/);
  t.equal(outcome.headers['x-request-id'], outcome.requestId);
}

t.test('a call with a good key is answered', (t) =>
  onEverySurface(t, async (t, caller) => {
    const outcome = await caller.call(
      getHealth,
      {},
      { headers: { authorization: `bEARER ${KEYS.noScopes}` } },
    );
    t.equal(outcome.code, 'ok');
    t.same(outcome.response, { status: 'ok' });
    t.match(outcome.requestId, /^req_/);
    t.match(outcome.headers, {
      'x-ratelimit-limit': '600',
      'x-ratelimit-remaining': '599',
      'x-ratelimit-reset': String(NOW_MS / 1000 + 0.75),
      ratelimit: '"reads-1s";r=599;t=1',
      'ratelimit-policy': '"reads-1s";q=600;w=1',
    });
  }),
);

t.test('a call without credentials is rejected', (t) =>
  onEverySurface(t, async (t, caller) => {
    for (const authorization of [undefined, '', 'Basic abc', 'Bearer', 'Bearer  ']) {
      const options = authorization === undefined ? {} : { headers: { authorization } };
      const outcome = await caller.call(getHealth, {}, options);
      isError(t, caller, outcome, ErrorCode.AUTH_MISSING_CREDENTIALS);
      t.equal(outcome.headers['www-authenticate'], 'Bearer');
      t.notOk(outcome.headers['x-ratelimit-limit']);
    }
  }),
);

t.test('a wrong key is rejected', (t) =>
  onEverySurface(t, async (t, caller) => {
    for (const key of ['svc_test_wrong', 'admin', `${KEYS.all} more`, 'x'.repeat(10_000)]) {
      const outcome = await caller.call(getHealth, {}, bearer(key));
      isError(t, caller, outcome, ErrorCode.AUTH_INVALID_KEY);
      t.equal(outcome.headers['www-authenticate'], 'Bearer');
    }
  }),
);

t.test("a key without the scope gets the missing scope's name", (t) =>
  onEverySurface(t, async (t, caller) => {
    const outcome = await caller.call(getBatch, { id: 'btc_1' }, bearer(KEYS.noScopes));
    isError(t, caller, outcome, ErrorCode.AUTH_INSUFFICIENT_SCOPE);
    t.same(outcome.details, { required: 'batches:read' });
  }),
);

t.test('a spent read window is 429 with its headers', (t) =>
  onEverySurface(t, async (t, caller) => {
    const outcome = await caller.call(getBatch, { id: 'btc_1' }, bearer(KEYS.spent));
    isError(t, caller, outcome, ErrorCode.RATE_LIMIT_EXCEEDED);
    t.match(outcome.details, { bucket: 'reads', window: 1, limit: 600 });
    t.match(outcome.headers, {
      'retry-after': '1',
      'x-ratelimit-limit': '600',
      'x-ratelimit-remaining': '0',
      ratelimit: '"reads-1s";r=0;t=1',
    });
  }),
);

t.test('a submission is rejected where its window is known to be spent', (t) =>
  onEverySurface(t, async (t, caller) => {
    const outcome = await caller.call(createAttestation, NEW_SUBMISSION, bearer(KEYS.spent));
    isError(t, caller, outcome, ErrorCode.RATE_LIMIT_EXCEEDED);
    t.match(outcome.details, { bucket: 'submissions', window: 3_600, limit: 10_000 });
    t.equal(outcome.headers['retry-after'], '3001');
    t.equal(outcome.headers['x-ratelimit-remaining'], '0');
  }),
);

t.test('the headers show the windows after the call', (t) =>
  onEverySurface(t, async (t, caller) => {
    const outcome = await caller.call(createAttestation, NEW_SUBMISSION, bearer(KEYS.all));
    t.equal(outcome.code, 'ok');
    if (caller.isRest) t.equal(outcome.status, 201);
    t.match(outcome.headers, {
      'x-ratelimit-limit': '10000',
      'x-ratelimit-remaining': '8999',
      'ratelimit-policy': '"submissions-1s";q=60;w=1, "submissions-3600s";q=10000;w=3600',
      ratelimit: '"submissions-1s";r=9000;t=1, "submissions-3600s";r=8999;t=3001',
    });
  }),
);

t.test("a handler's error reaches the caller with its headers", (t) =>
  onEverySurface(t, async (t, caller) => {
    const missing = await caller.call(getBatch, { id: 'btc_missing' }, bearer(KEYS.all));
    isError(t, caller, missing, ErrorCode.BATCH_NOT_FOUND);
    t.equal(missing.message, 'no such batch');
    t.equal(missing.headers['x-ratelimit-remaining'], '599');
    const busy = await caller.call(getBatch, { id: 'btc_busy' }, bearer(KEYS.all));
    isError(t, caller, busy, ErrorCode.SERVICE_UNAVAILABLE);
    t.equal(busy.headers['retry-after'], '7');
  }),
);

t.test('a failure is logged under the request id, and its response hides the cause', async (t) => {
  const { baseUrl, lines } = await startApiServer(t);
  for (const caller of callers(baseUrl)) {
    t.teardown(caller.close);
    const outcome = await caller.call(getBatch, { id: 'btc_broken' }, bearer(KEYS.all));
    isError(t, caller, outcome, ErrorCode.SERVICE_INTERNAL);
    t.notMatch(JSON.stringify(outcome), SECRET_FAILURE);
    const line = lines.find((one) => one.level === 'error' && one.request_id === outcome.requestId);
    t.match(line, { err: { message: SECRET_FAILURE } }, caller.name);
  }
});

t.test('a message that breaks a rule of its proto is rejected', (t) =>
  onEverySurface(t, async (t, caller) => {
    const outcome = await caller.call(listBatches, { limit: 201 }, bearer(KEYS.all));
    isError(t, caller, outcome, ErrorCode.REQUEST_INVALID);
    t.match(outcome.details, { errors: [{ path: '/limit' }] });
    t.equal(outcome.headers['x-ratelimit-remaining'], '599');
  }),
);

t.test('an idempotency key is 1 to 255 visible ASCII characters, bare or quoted', async (t) => {
  const { baseUrl, calls } = await startApiServer(t);
  const create = (caller: Caller, key: string) =>
    caller.call(createAttestation, NEW_SUBMISSION, {
      headers: { authorization: `Bearer ${KEYS.all}`, 'idempotency-key': key },
    });
  for (const caller of callers(baseUrl)) {
    t.teardown(caller.close);
    for (const [header, key] of [
      ['abc', 'abc'],
      ['"abc"', 'abc'],
      ['"a\\"b"', 'a"b'],
      ['a"b', 'a"b'],
      ['~'.repeat(255), '~'.repeat(255)],
    ] as const) {
      t.equal((await create(caller, header)).code, 'ok', `${caller.name}: ${header}`);
      t.equal(calls.at(-1)?.idempotencyKey, key);
    }
    for (const header of ['""', 'a b', '"a b"', 'x'.repeat(256)]) {
      isError(t, caller, await create(caller, header), ErrorCode.IDEMPOTENCY_KEY_INVALID);
    }
  }
});

t.test('an idempotency key is ignored where the method does not honour it', (t) =>
  onEverySurface(t, async (t, caller) => {
    const headers = { authorization: `Bearer ${KEYS.all}`, 'idempotency-key': 'not a key' };
    t.equal((await caller.call(getHealth, {}, { headers })).code, 'ok');
  }),
);

t.test('a call is answered when its deadline passes, and its signal aborts', async (t) => {
  const { baseUrl, calls, observed } = await startApiServer(t);
  for (const caller of callers(baseUrl).filter(({ isRest }) => !isRest)) {
    t.teardown(caller.close);
    const outcome = await caller.call(
      getBatch,
      { id: 'btc_never' },
      { headers: { ...bearer(KEYS.all).headers, 'connect-timeout-ms': '50', 'grpc-timeout': '50m' } },
    );
    isError(t, caller, outcome, ErrorCode.SERVICE_DEADLINE_EXCEEDED);
    t.ok(calls.at(-1)?.signal().aborted, caller.name);
    const { requestId } = outcome;
    t.match(await observed((one) => one.requestId === requestId), { status: 504 });
  }
});

t.test('a deadline longer than any timer does not apply', async (t) => {
  const { baseUrl } = await startApiServer(t);
  for (const caller of callers(baseUrl)) {
    t.teardown(caller.close);
    const headers = {
      ...bearer(KEYS.all).headers,
      'grpc-timeout': '99999999H',
      'connect-timeout-ms': '9999999999',
    };
    t.equal((await caller.call(getHealth, {}, { headers })).code, 'ok', caller.name);
  }
});

t.test('a request has one log line with caller, RPC and outcome', async (t) => {
  const { baseUrl, lines, observed } = await startApiServer(t);
  for (const caller of callers(baseUrl)) {
    t.teardown(caller.close);
    const { requestId } = await caller.call(getBatch, { id: 'btc_missing' }, bearer(KEYS.all));
    const observation = await observed((one) => one.requestId === requestId);
    t.match(observation, {
      rpc: 'BatchService/GetBatch',
      error: 'batch.not_found',
      apiKeyId: 'key_all',
      projectId: 'prj_1',
      status: 404,
      protocol: /^(rest|connect|grpc|grpc-web)$/,
    });
    const [line, ...more] = lines.filter((one) => one.request_id === requestId);
    t.same(more, []);
    t.match(line, { level: 'info', msg: 'request', status: 404, api_key_id: 'key_all', project_id: 'prj_1' });
  }
  t.notMatch(JSON.stringify(lines), KEYS.all);
});
