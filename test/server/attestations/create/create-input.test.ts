import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { jcs } from '../../../../src/proof/bytes/jcs.js';
import { startApp } from '../../../support/app.js';
import type { RestAnswer } from '../../../support/calling/rpc-clients.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { creation, METADATA } from '../../rpc/samples.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const owner = await newKey(app);
const { createAttestation } = AttestationService.method;
const SHA256 = 'Ab'.repeat(32);
const TEXT = 'must not hold U+0000 or a lone surrogate';

function post(body: JsonObject | string): Promise<RestAnswer> {
  return app.rest('/v1/attestations', { method: 'POST', apiKey: owner.key, body });
}

/** `path: message` of every problem that an answer lists. */
function problemsOf({ details }: { details?: unknown }): string[] {
  const { errors } = details as { errors: { path: string; message: string }[] };
  return errors.map(({ path, message }) => `${path}: ${message}`);
}

/** Metadata whose JCS has exactly so many bytes. */
function metadataOf(bytes: number): JsonObject {
  const metadata = { ...METADATA, fill: '' };
  return { ...metadata, fill: 'ü'.repeat(2).padEnd(bytes - jcs(metadata).length - 2, 'x') };
}

/** Metadata of so many levels. */
function metadataDown(levels: number): JsonObject {
  let value: JsonObject = {};
  for (let level = 2; level < levels; level++) value = level % 2 === 0 ? { a: value } : { a: [value] };
  return { ...METADATA, value };
}

t.test('an integer that would not come back as it was sent is rejected, with where it is', async (t) => {
  const text = (id: string) =>
    `{"artifact":{"sha256":"${SHA256}"},"metadata":{"schema":"purl","purl":"pkg:npm/a@1","runs":[{"id":${id}}]}}`;
  for (const id of ['9007199254740993', '-9007199254740993', '1763812345678901234', '18446744073709551615']) {
    const { status, json } = await post(text(id));
    t.equal(status, 400, id);
    t.match(json, { error: { code: 'request.invalid', message: /send it as a string/ } });
    t.strictSame(problemsOf(json.error as JsonObject), [
      '/metadata/runs/0/id: is an integer that JSON numbers do not hold exactly: send it as a string',
    ]);
  }
  for (const [id, status, answer] of [
    [
      '9007199254740993',
      400,
      /"invalid_argument".*\/metadata\/runs\/0\/id is an integer .* send it as a string/,
    ],
    ['9007199254740992', 200, /"sub_/],
  ] as const) {
    const asked = await fetch(`${app.baseUrl}/${AttestationService.typeName}/${createAttestation.name}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${owner.key}` },
      body: text(id),
    });
    t.equal(asked.status, status, `Connect: ${id}`);
    t.match(await asked.text(), answer, `Connect: ${id}`);
  }
  for (const id of [
    '9007199254740991',
    '9007199254740992',
    '100000000000000000000',
    '0.1',
    '"9007199254740993"',
  ]) {
    const { status, json } = await post(text(id));
    t.equal(status, 201, id);
    t.match(json.metadata, { runs: [{ id: JSON.parse(id) }] });
  }
});

t.test('metadata is taken up to 64 KiB and 32 levels, and no further, on every surface', async (t) => {
  t.equal(Buffer.byteLength(jcs(metadataOf(65_536))), 65_536);
  const levels = (json: unknown): number =>
    typeof json === 'object' && json !== null ? 1 + Math.max(0, ...Object.values(json).map(levels)) : 0;
  const deep = Array.from({ length: 64 }, (_, i) => metadataDown(i));
  const [fits, tooDeep] = [deep.find((m) => levels(m) === 32), deep.find((m) => levels(m) === 33)];
  for (const { name, call } of surfaces) {
    const outcomeOf = (metadata: JsonObject = {}) =>
      call(createAttestation, creation(SHA256, metadata), owner.key);
    t.equal((await outcomeOf(metadataOf(65_536))).code, 'ok', name);
    t.equal((await outcomeOf(fits)).code, 'ok', name);
    t.match(await outcomeOf(metadataOf(65_537)), {
      code: 'request.invalid',
      details: { errors: [{ path: '/metadata', message: 'is larger than 64 KiB' }] },
    });
    t.match(await outcomeOf(tooDeep), {
      code: 'request.invalid',
      details: { errors: [{ path: '/metadata', message: 'is more than 32 levels deep' }] },
    });
  }
});

t.test('text that cannot be stored is rejected anywhere, on every surface', async (t) => {
  const cases: [metadata: string, path: string][] = [
    ['{"schema":"purl","purl":"pkg:npm/a\\u0000"}', '/metadata/purl'],
    ['{"schema":"pu\\u0000rl"}', '/metadata/schema'],
    ['{"schema":"purl","a":{"b":["x","\\u0000"]}}', '/metadata/a/b/1'],
    ['{"schema":"purl","a~/\\u0000":1}', '/metadata/a~0~1\0'],
    ['{"schema":"purl","a":"\\ud800"}', '/metadata/a'],
    ['{"schema":"purl","a":"\\udc00\\ud800"}', '/metadata/a'],
    ['{"schema":"purl","\\ud800":1}', '/metadata/\ufffd'],
  ];
  for (const [metadata, path] of cases) {
    const body = `{"artifact":{"sha256":"${SHA256}"},"metadata":${metadata}}`;
    const answer = await post(body);
    t.equal(answer.status, 400);
    t.match(answer.json, {
      error: { code: 'request.invalid', details: { errors: [{ path, message: TEXT }] } },
    });
    const connect = await app.rest('/attestation.v1.AttestationService/CreateAttestation', {
      apiKey: owner.key,
      body,
    });
    t.equal(connect.status, 400);
    t.match(connect.body.toString(), '"code":"request.invalid"');
  }
  const binary = surfaces.filter(({ name }) => name !== 'REST' && name !== 'Connect JSON');
  for (const { name, call } of binary) {
    for (const metadata of [
      { schema: 'purl', a: '\0' },
      { schema: 'purl', a: Number.NaN },
    ]) {
      const outcome = await call(createAttestation, creation(SHA256, metadata), owner.key);
      t.match(outcome, { code: 'request.invalid', details: { errors: [{ path: '/metadata/a' }] } }, name);
    }
  }
});

t.test('a rejection is short, however long the names of members are', async (t) => {
  const name = 'n'.repeat(100_000);
  const many = (item: (index: number) => string) => Array.from({ length: 100 }, (_, i) => item(i)).join();
  const inside = [
    `"metadata":{"schema":"purl","${name}":{${many((i) => `"k${i}":1,"k${i}":2`)}}}`,
    `"metadata":{"schema":"purl","${name}":[${many(() => '9007199254740993')}]}`,
    `"metadata":{"schema":"purl","${name}":[${many(() => '"\\u0000"')}]}`,
    `"metadata":{"schema":"purl"},"${name}":1`,
    `"metadata":{"schema":"purl"},"${'~'.repeat(400)}":1`,
  ];
  for (const members of inside) {
    const body = `{"artifact":{"sha256":"${SHA256}"},${members}}`;
    const { status, json } = await post(body);
    t.equal(status, 400);
    t.ok(JSON.stringify(json).length < 20_000, `${members.slice(0, 60)}: ${JSON.stringify(json).length}`);
  }
});

t.test('every wrong or unknown member is named by its pointer, all at once', async (t) => {
  const sha = { sha256: SHA256 };
  const cases: [body: JsonObject | string, ...problems: string[]][] = [
    ['{}', '/artifact: is required', '/metadata: is required'],
    ['', '/artifact: is required', '/metadata: is required'],
    ['[]', ': must be an object'],
    ['null', ': must be an object'],
    ['"x"', ': must be an object'],
    [{ artifact: [], metadata: 'x' }, '/artifact: must be an object', '/metadata: must be an object'],
    [{ artifact: {}, metadata: METADATA }, '/artifact/sha256: is required'],
    [{ artifact: { sha256: 7 }, metadata: METADATA }, '/artifact/sha256: must be a string'],
    [{ artifact: { ...sha, path: 'x' }, metadata: METADATA }, '/artifact/path: is not a known member'],
    [{ ...creation(SHA256), id: 'sub_1' }, '/id: is not a known member'],
    [{ ...creation(SHA256), 'a/~b': 1 }, '/a~1~0b: is not a known member'],
    [{ ...creation(SHA256), validation: 'STRICT' }, '/validation: must be one of strict, lenient'],
    [{ ...creation(SHA256), validation: 1 }, '/validation: must be one of strict, lenient'],
    [{ artifact: sha, metadata: {} }, '/metadata/schema: is required'],
    [{ artifact: sha, metadata: { schema: 1 } }, '/metadata/schema: must be the name of a schema'],
    [{ artifact: sha, metadata: { schema: '' } }, '/metadata/schema: must be the name of a schema'],
    [
      `{"artifact":{"sha256":"${SHA256}"},"metadata":{"schema":"purl","n":1e999}}`,
      '/metadata/n: is out of range',
    ],
  ];
  for (const [body, ...problems] of cases) {
    const answer = await post(body);
    t.equal(answer.status, 400, JSON.stringify(body));
    t.match(answer.json, { error: { code: 'request.invalid', request_id: answer.headers['x-request-id'] } });
    t.same(problemsOf(answer.json.error as JsonObject).sort(), problems.sort(), JSON.stringify(body));
  }
  const wrong = [
    '',
    '0'.repeat(63),
    '0'.repeat(65),
    'g'.repeat(64),
    `${SHA256}\n`,
    ` ${SHA256}`,
    `0x${SHA256}`,
  ];
  for (const { name, call } of surfaces) {
    for (const sha256 of wrong) {
      const outcome = await call(createAttestation, creation(sha256), owner.key);
      t.match(
        outcome,
        { code: 'request.invalid', details: { errors: [{ path: '/artifact/sha256' }] } },
        name,
      );
    }
  }
});

t.test('rejections are ordered: route, key, scope, then type, size and content of the body', async (t) => {
  const { key: scopeless } = await newKey(app, { scopes: [] });
  const large = 'x'.repeat(1024 * 1024 + 1);
  const codeOf = async (path: string, options: Parameters<typeof app.rest>[1]) =>
    ((await app.rest(path, options)).json.error as JsonObject).code;
  const send = (apiKey: string | undefined, body: string, headers = {}) =>
    codeOf('/v1/attestations', { method: 'POST', apiKey, body, headers });
  t.equal(await codeOf('/v1/attestation', { method: 'POST', body: large }), 'route.not_found');
  t.equal(await codeOf('/v1/attestations', { method: 'PUT', body: large }), 'request.method_not_allowed');
  t.equal(await send(undefined, large), 'auth.missing_credentials');
  t.equal(await send(scopeless, large), 'auth.insufficient_scope');
  t.equal(await send(owner.key, large), 'request.too_large');
  t.equal(await send(owner.key, '{', { 'content-type': 'text/plain' }), 'request.unsupported_media_type');
  t.equal(await send(owner.key, '{', { 'content-encoding': 'gzip' }), 'request.unsupported_media_type');
  t.equal(await send(owner.key, '{'), 'request.malformed_json');
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
