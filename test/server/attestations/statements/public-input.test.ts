/** What creating with a public statement rejects, alone and in batches, on every surface; and what keys make of it. */
import { createHmac, randomBytes } from 'node:crypto';
import { fromJson, type JsonObject, toJson } from '@bufbuild/protobuf';
import t from 'tap';
import {
  AttestationService,
  CreateAttestationRequestSchema,
  StatementForm,
  ValidationMode,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { jcs } from '../../../../src/proof/bytes/jcs.js';
import { deriveKeyRing } from '../../../../src/server/keys/key-ring.js';
import { startApp } from '../../../support/app.js';
import type { Outcome } from '../../../support/calling/surfaces.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { creation } from '../../rpc/samples.js';
import { digest, publicCreation, RESULT } from './public-samples.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const owner = await newKey(app);
const { createAttestation, batchCreateAttestations } = AttestationService.method;
const [rest] = surfaces;
if (rest === undefined) throw new Error('there is no REST surface');

const MAX_BYTES = 128 * 1024;
const named = (...names: (string | undefined)[]) =>
  names.map((name) => ({ sha256: digest(), ...(name !== undefined && { name }) }));
const invalid = (path: string, message: string | RegExp) => ({
  code: 'request.invalid',
  details: { errors: [{ path, message }] },
});

/** Subjects that make a statement of so many bytes at least, fewer than 1,024. */
const large = (bytes: number) =>
  named(...Array.from({ length: bytes / 600 }, (_, i) => `${i}`.padEnd(500, 'x')));

type Message = Parameters<typeof fromJson>[1] | Record<string, unknown>;
const CASES: readonly (readonly [string, Message, object])[] = [
  [
    'a name of 513 characters',
    publicCreation(digest(), named('x'.repeat(513))),
    invalid('/subjects/0/name', 'must be at most 512 characters'),
  ],
  ['an empty name', publicCreation(digest(), named('')), invalid('/subjects/0/name', 'must not be empty')],
  [
    'a control character',
    publicCreation(digest(), named('a', 'b\nc')),
    invalid('/subjects/1/name', /without control characters/),
  ],
  [
    'a C1 control character',
    publicCreation(digest(), named('\u0085')),
    invalid('/subjects/0/name', /without control characters/),
  ],
  [
    'a name of the artifact with a tab',
    { ...publicCreation(), artifact: { sha256: digest(), name: 'a\tb' } },
    invalid('/artifact/name', /without control characters/),
  ],
  [
    'the same of a private one',
    { ...creation(digest()), artifact: { sha256: digest(), name: 'a\0b' } },
    invalid('/artifact/name', /./),
  ],
  [
    'a name twice',
    publicCreation(digest(), named('a', 'b', 'a')),
    invalid('/subjects/2/name', 'is the name of an earlier subject'),
  ],
  [
    'the name of the artifact again',
    { ...publicCreation(digest(), named('a')), artifact: { sha256: digest(), name: 'a' } },
    invalid('/subjects/0/name', 'is the name of an earlier subject'),
  ],
  [
    'no digest',
    publicCreation(digest(), [{ sha256: 'ab' }]),
    invalid('/subjects/0/sha256', 'must be 64 hex digits'),
  ],
  [
    '1,024 subjects beside the artifact',
    publicCreation(digest(), named(...Array(1024).fill(undefined))),
    invalid('/subjects', /1023/),
  ],
  [
    'subjects of a private one',
    { ...creation(digest()), subjects: named('a') },
    invalid('/subjects', 'goes with "statement": "public" only'),
  ],
  [
    'lenient validation',
    { ...publicCreation(), validation: ValidationMode.LENIENT },
    invalid('/validation', 'must be strict with "statement": "public"'),
  ],
  [
    'a schema without a predicate type',
    { ...publicCreation(), metadata: creation('').metadata },
    {
      code: 'statement.no_predicate_type',
      details: { schema: 'purl', known: ['evaluation.v1', 'intoto.test_result.v0.1', 'slsa.provenance.v1'] },
    },
  ],
  [
    'a schema that is not known',
    { ...publicCreation(), metadata: { schema: 'nothing' } },
    { code: 'submission.unknown_schema' },
  ],
  [
    'invalid metadata',
    { ...publicCreation(), metadata: { schema: RESULT.schema } },
    { code: 'submission.invalid_metadata', message: /a public statement has valid metadata only/ },
  ],
  [
    '129 KiB',
    publicCreation(digest(), large(129 * 1024)),
    invalid('/statement', new RegExp(`^would be 1[3-5]\\d{4} bytes long .*at most ${MAX_BYTES}$`)),
  ],
];

for (const [what, message, expected] of CASES) {
  t.test(`${what} is an error of its own`, async (t) => {
    for (const { name, call } of surfaces) {
      const alone = await call(createAttestation, message as never, owner.key);
      t.match(alone, expected, name);
      const items = [message, creation(digest())];
      const { code, response } = await call(batchCreateAttestations, { items } as never, owner.key);
      t.equal(code, 'ok', name);
      const error = (response.results as JsonObject[])[0]?.error;
      const { details = {}, ...rest } = expected as { details?: object };
      t.match(error, { ...rest, details }, name);
    }
  });
}

t.test('what JSON only can say wrongly is an error as well', async (t) => {
  const post = (body: string | JsonObject) => app.rest('/v1/attestations', { apiKey: owner.key, body });
  const body = JSON.stringify({ ...publicCreation(), statement: 'public', subjects: named('NAME') });
  for (const name of ['\\ud800', 'a\\udfff', '\\u0000']) {
    const { status, json } = await post(body.replace('NAME', name));
    t.match([status, json], [400, { error: { details: { errors: [{ path: '/subjects/0/name' }] } } }], name);
  }
  for (const statement of ['Public', '', 2, null, ['public'], 'STATEMENT_FORM_PUBLIC', 'unspecified']) {
    const { status, json } = await post({ ...creation(digest(), RESULT), statement });
    t.match([status, json], [400, { error: { code: 'request.invalid' } }], String(statement));
  }
  for (const subjects of [{}, 'x', [7], [[]], [{ sha256: digest(), path: 'x' }], [{}]] as never[]) {
    const { status, json } = await post({ ...creation(digest(), RESULT), statement: 'public', subjects });
    t.match([status, json], [400, { error: { code: 'request.invalid' } }], JSON.stringify(subjects));
  }
});

t.test('the limits themselves are accepted', async (t) => {
  const artifact = { sha256: digest(), name: '💣'.repeat(512) };
  const subjects = named(...Array(1023).fill(undefined));
  const most = await rest.call(createAttestation, { ...publicCreation(), artifact, subjects }, owner.key);
  t.match(most, { code: 'ok', response: { artifact, subjectCount: 1023 } });
  const fits = await rest.call(createAttestation, publicCreation(digest(), large(126 * 1024)), owner.key);
  t.equal(fits.code, 'ok', fits.message);
  const same = digest();
  const twins = await rest.call(
    createAttestation,
    publicCreation(same, [{ sha256: same }, { sha256: same, name: 'a' }]),
    owner.key,
  );
  t.equal(twins.code, 'ok', 'digests may be the same');
});

t.test('a statement of 128 KiB is accepted, and one with a byte more is not', async (t) => {
  const subjects = large(127 * 1024);
  const send = (name: string) => {
    const message = { ...publicCreation(digest(), subjects), artifact: { sha256: digest(), name } };
    return rest.call(createAttestation, message, owner.key);
  };
  let over: Outcome;
  for (;;) {
    over = await send('y'.repeat(512));
    if (over.code !== 'ok') break;
    subjects.push(...named(undefined));
  }
  const [{ message = '' } = {}] = over.details.errors as { message: string }[];
  const excess = Number(/^would be (\d+)/.exec(message)?.[1]) - MAX_BYTES;
  t.equal((await send('y'.repeat(512 - excess))).code, 'ok');
  t.match(
    await send('y'.repeat(513 - excess)),
    invalid('/statement', new RegExp(`^would be ${MAX_BYTES + 1} `)),
  );
});

t.test('the hash of a request has its statement, subjects and name', async (t) => {
  const [{ key }] = deriveKeyRing(app.config.secrets.secretKeys, 'idempotency');
  const hashOf = (text: string) =>
    createHmac('sha256', key)
      .update(`attestation.v1.AttestationService/CreateAttestation\n${text}`)
      .digest('hex');
  const sha256 = digest();
  for (const message of [
    publicCreation(sha256),
    publicCreation(sha256, named('a', undefined, 'ünïcode "\\ 💣')),
    { ...creation(sha256, RESULT), artifact: { sha256, name: 'a "\\' } },
  ]) {
    const idempotencyKey = randomBytes(8).toString('hex');
    await rest.call(createAttestation, message, owner.key, { 'idempotency-key': idempotencyKey });
    const [row] = await app.pool<{ hash: string }[]>`
      SELECT encode(request_hash, 'hex') AS hash FROM idempotency_key WHERE key = ${idempotencyKey}`;
    const request = fromJson(CreateAttestationRequestSchema, message as JsonObject);
    t.equal(row?.hash, hashOf(jcs(toJson(CreateAttestationRequestSchema, request))));
  }
});

t.test('the same key with another form, subject or name is a conflict; else a replay', async (t) => {
  for (const { name, call } of surfaces) {
    const key = randomBytes(8).toString('hex');
    const artifact = { sha256: digest(), name: 'a' };
    const message = { ...publicCreation(digest(), named('b', 'c')), artifact };
    const send = (sent: object) =>
      call(createAttestation, sent as never, owner.key, { 'idempotency-key': key });
    const item = async (sent: object) => {
      const items = [{ ...sent, idempotencyKey: key }];
      const { response } = await call(batchCreateAttestations, { items } as never, owner.key);
      return (response.results as JsonObject[])[0];
    };
    const first = await send(message);
    t.equal(first.code, 'ok', name);
    const upper = message.subjects.map((one) => ({ ...one, sha256: one.sha256.toUpperCase() }));
    for (const sent of [message, { ...message, subjects: upper }]) {
      const { headers, response } = await send(sent);
      t.equal(headers['idempotent-replayed'], 'true', name);
      t.match(response, { id: first.response.id, subjects: message.subjects }, name);
      t.match(
        await item(sent),
        { outcome: 'ITEM_OUTCOME_REPLAYED', submission: { id: first.response.id } },
        name,
      );
    }
    for (const other of [
      { ...message, subjects: [] },
      { ...message, subjects: message.subjects.toReversed() },
      { ...message, subjects: [...message.subjects, ...named('d')] },
      { ...message, artifact: { sha256: artifact.sha256 } },
      { ...message, artifact: { ...artifact, name: 'A' } },
      { ...message, subjects: [], statement: StatementForm.PRIVATE },
    ]) {
      t.equal((await send(other)).code, 'idempotency.key_reused', name);
      t.match(await item(other), { error: { code: 'idempotency.key_reused' } }, name);
    }
  }
});

t.test('"private" is what leaving it out is', async (t) => {
  const headers = { 'idempotency-key': randomBytes(8).toString('hex') };
  const message = creation(digest());
  const first = await rest.call(createAttestation, message, owner.key, headers);
  const spelled = { ...message, statement: StatementForm.PRIVATE };
  const again = await rest.call(createAttestation, spelled, owner.key, headers);
  t.equal(again.response.id, first.response.id);
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
