import t from 'tap';
import { fromUtf8, utf8 } from '../../../src/proof/bytes/encoding.js';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import { jcsBytes } from '../../../src/proof/bytes/jcs.js';
import {
  MANIFEST_PREDICATE_TYPE,
  manifestEnvelope,
  manifestStatement,
} from '../../../src/proof/export/manifest.js';
import type { ManifestFields } from '../../../src/proof/export/manifest-fields.js';
import { parseManifestStatement, readManifest } from '../../../src/proof/export/read-manifest.js';
import { parseStatement, statementBytes } from '../../../src/proof/statement/statement.js';
import { sample, service } from '../verifying.js';
import { EXPORT_ID, manifestFields, manifestObject, signManifest } from './manifest-sample.js';

t.test('a statement is the documented JSON in its canonical form, from fields in any order', async (t) => {
  const fields = manifestFields();
  const { objects, logs } = fields;
  const statement = fromUtf8(manifestStatement(fields));
  t.strictSame(JSON.parse(statement), {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [
      { name: 'btc_01JX5WQ4ZZZZZZZZZZZZZZZZZZ.jsonl', digest: { sha256: '4'.repeat(64) } },
      { name: 'btc_01JX5WQ5ZZZZZZZZZZZZZZZZZZ.jsonl', digest: { sha256: '5'.repeat(64) } },
    ],
    predicateType: 'urn:attestation-service:export-manifest:v1',
    predicate: {
      export: EXPORT_ID,
      project: fields.project,
      environment: 'live',
      day: '2025-06-07',
      filter_schema: null,
      revision: 3,
      is_complete: true,
      objects: [
        {
          name: 'btc_01JX5WQ4ZZZZZZZZZZZZZZZZZZ.jsonl',
          batch_id: 'btc_01JX5WQ4ZZZZZZZZZZZZZZZZZZ',
          log: 'live.log.example',
          first_index: 650,
          tree_size: 1000,
          submissions: 1,
          bytes: 7421,
          revision: 1,
        },
        {
          name: 'btc_01JX5WQ5ZZZZZZZZZZZZZZZZZZ.jsonl',
          batch_id: 'btc_01JX5WQ5ZZZZZZZZZZZZZZZZZZ',
          log: 'live.log.example',
          first_index: 1000,
          tree_size: 1300,
          submissions: 2,
          bytes: 7421,
          revision: 1,
        },
      ],
      logs: [{ origin: 'live.log.example', start: 0, from: 600, to: 1400 }],
    },
  });
  t.strictSame(utf8(statement), jcsBytes(JSON.parse(statement)));
  const other = { origin: 'a.example', start: 0, from: 0, to: 0 };
  const ordered = manifestStatement({ ...fields, logs: [other, ...logs] });
  const shuffled = manifestStatement({
    ...fields,
    objects: [...objects].reverse(),
    logs: [...logs, other],
  });
  t.strictSame(shuffled, ordered);
});

t.test('a manifest is read as it was signed', async (t) => {
  const table: Partial<ManifestFields>[] = [
    {},
    { filterSchema: 'purl', isComplete: false, environment: 'test' },
    { objects: [], logs: [] },
    { objects: [manifestObject('4', { submissions: 0, bytes: 0 })] },
    { objects: [manifestObject('4', { name: 'btc_01JX5WQ4ZZZZZZZZZZZZZZZZZZ.jsonl.gz' })] },
  ];
  for (const change of table) {
    const fields = manifestFields(change);
    const bytes = signManifest(service, fields);
    t.strictSame(Object.keys(JSON.parse(fromUtf8(bytes))), ['payload', 'payloadType', 'signatures']);
    t.strictSame(readManifest(bytes).fields, fields);
  }
});

t.test('a manifest that contradicts itself is neither made nor read', async (t) => {
  const { objects, logs } = manifestFields();
  const [first, second] = [objects[0]!, objects[1]!];
  const [log] = [logs[0]!];
  const cases: [problem: RegExp, Partial<ManifestFields>][] = [
    [/not an export id/, { exportId: 'exp_1' }],
    [/not a project id/, { project: '' }],
    [/not a date/, { day: '2025-02-30' }],
    [/not a date/, { day: '2025-6-7' }],
    [/not the name of a schema/, { filterSchema: '' }],
    [/not a positive integer/, { revision: 0 }],
    [/not a positive integer/, { revision: 1.5 }],
    [/a log occurs twice/, { logs: [log, { ...log, from: 700 }] }],
    [/not that of a log/, { objects: [], logs: [{ ...log, origin: '\u001b[2J' }] }],
    [/not sizes in this order/, { logs: [{ ...log, from: 1500 }] }],
    [/not sizes in this order/, { logs: [{ ...log, start: 601 }] }],
    [/not sizes in this order/, { logs: [{ ...log, start: -1 }] }],
    [/an object occurs twice/, { objects: [first, { ...second, name: first.name }] }],
    [/not a batch id/, { objects: [{ ...first, batchId: 'btc_' }] }],
    [/name is not its batch's id/, { objects: [{ ...first, name: second.name }] }],
    [/name is not its batch's id/, { objects: [{ ...first, name: `../${first.name}` }] }],
    [/not a SHA-256/, { objects: [{ ...first, sha256: first.sha256.slice(1) }] }],
    [/a batch has no leaves/, { objects: [{ ...first, treeSize: first.firstIndex }] }],
    [/submissions do not fit/, { objects: [{ ...first, submissions: 351 }] }],
    [/submissions do not fit/, { objects: [{ ...first, submissions: -1 }] }],
    [/bytes is not/, { objects: [{ ...first, bytes: -1 }] }],
    [/revision is not/, { objects: [{ ...first, revision: Number.NaN }] }],
    [/not among the logs/, { logs: [] }],
    [/overlap/, { objects: [first, { ...second, firstIndex: 999 }] }],
    [/begins before/, { objects: [{ ...first, firstIndex: 599 }] }],
    [/ends after/, { objects: [{ ...second, treeSize: 1401 }] }],
  ];
  for (const [problem, change] of cases) {
    t.throws(() => manifestStatement(manifestFields(change)), { name: 'FormatError', message: problem });
  }
});

t.test('a manifest from before signatures had an empty keyid is read', async (t) => {
  const good = fromUtf8(signManifest(service, manifestFields()));
  const earlier = good.replace('"keyid":"",', '');
  t.not(earlier, good);
  t.strictSame(readManifest(utf8(earlier)), readManifest(utf8(good)));
});

t.test('anything but a canonical manifest is rejected', async (t) => {
  const good = fromUtf8(signManifest(service, manifestFields()));
  const envelope = JSON.parse(good);
  const wrapped = (statement: string) => fromUtf8(manifestEnvelope(utf8(statement), Uint8Array.of(1)));
  const statement = fromUtf8(manifestStatement(manifestFields()));
  const twice = { ...envelope, signatures: [...envelope.signatures, ...envelope.signatures] };
  const cases: [what: string, text: string][] = [
    ['nothing', ''],
    ['null', 'null'],
    ['an array', '[]'],
    ['a cut', good.slice(0, -1)],
    ['garbage after it', `${good}\n`],
    ['NUL', `${good}\0`],
    ['white space', good.replace('{', '{ ')],
    ['deep JSON', '['.repeat(100_000)],
    ['another type', JSON.stringify({ ...envelope, payloadType: 'text/plain' })],
    ['a key id', good.replace('"keyid":""', '"keyid":"a"')],
    ['two signatures', JSON.stringify(twice)],
    ['no signature', JSON.stringify({ ...envelope, signatures: [] })],
    ['a member more', good.replace('{', '{"a":1,')],
    ['a payload that is not base64', JSON.stringify({ ...envelope, payload: '?' })],
    ['an empty payload', JSON.stringify({ ...envelope, payload: '' })],
    ['a statement with a member more', wrapped(statement.replace('"predicate":{', '"predicate":{"a":1,'))],
    ['a statement with a member twice', wrapped(statement.replace('"day":', '"day":"2025-06-07","day":'))],
    ['a statement with white space', wrapped(`${statement} `)],
    ['a statement without subjects', wrapped(statement.replace(/"subject":\[.*\]/, '"subject":[]'))],
    ['a number in another spelling', wrapped(statement.replace('"revision":3', '"revision":3.0'))],
    ['a text for a number', wrapped(statement.replace('"revision":3', '"revision":"3"'))],
    ['another environment', wrapped(statement.replace('"live"', '"Live"'))],
    ['a statement of another type', wrapped(statement.replace('/Statement/v1', '/Statement/v2'))],
  ];
  for (const [what, text] of cases) t.throws(() => readManifest(utf8(text)), FormatError, what);
  t.throws(() => readManifest(new Uint8Array(64 * 1024 * 1024 + 1)), /longer than 64 MiB/);
  t.throws(() => readManifest(Uint8Array.of(0x7b, 0xff, 0x7d)), /UTF-8/);
});

t.test('a manifest is no submission statement, and a submission statement is no manifest', async (t) => {
  const manifest = manifestStatement(manifestFields());
  const submission = statementBytes(sample.statement);
  t.throws(() => parseStatement(manifest), FormatError);
  t.throws(() => parseManifestStatement(submission), {
    message: /predicateType is not urn:.*export-manifest/,
  });
  const renamed = fromUtf8(submission).replace(
    'urn:attestation-service:submission:v1',
    MANIFEST_PREDICATE_TYPE,
  );
  t.throws(() => parseManifestStatement(utf8(renamed)), FormatError);
});
