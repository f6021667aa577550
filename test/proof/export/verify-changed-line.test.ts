/** Lines that differ from their attestation: a table of changes, each with the reason. */
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { batch, CORRECTED, changed, good, INVALID, second, verifier } from './line-sample.js';

t.test('a line that differs from its attestation is not verified, with the reason', async (t) => {
  const set = (members: JsonObject) => changed(({ submission }) => Object.assign(submission, members));
  const redacted = {
    metadata: { schema: 'purl' },
    metadata_state: 'redacted',
    redacted_at: '2025-06-08T00:00:00Z',
  };
  const salt = String(good.submission.metadata_salt);
  const cases: [what: string, text: string, reason: RegExp][] = [
    [
      'another bundle',
      changed((line) => Object.assign(line, { bundle: second!.lines[0]!.bundle })),
      /\/id is not the bundle's/,
    ],
    [
      'a bundle of the batch',
      changed((line) => Object.assign(line, { bundle: batch!.lines[1]!.bundle })),
      /log_index is not/,
    ],
    [
      'id',
      set({ id: String(good.submission.id).replace('sub_01', 'sub_02') }),
      /\/submission\/id is not the bundle's/,
    ],
    ['leaf', set({ leaf_sha256: '0'.repeat(64) }), /leaf_sha256 is not the bundle's/],
    [
      'artifact',
      set({ artifact: { sha256: '0'.repeat(64) } }),
      /the artifact is not the one that was attested/,
    ],
    [
      'no artifact',
      changed(({ submission }) => delete submission.artifact),
      /artifact\/sha256 is not the bundle's/,
    ],
    ['time', set({ submitted_at: '2025-06-07T11:59:59.124Z' }), /submitted_at is not/],
    [
      'time with a nanosecond',
      set({ submitted_at: '2025-06-07T11:59:59.123000001Z' }),
      /submitted_at is not/,
    ],
    ['environment', set({ environment: 'test' }), /environment is not/],
    ['index', set({ log_index: 3 }), /log_index is not/],
    ['batch', set({ batch_id: second!.id }), /batch_id is not/],
    ['no batch', changed(({ submission }) => delete submission.batch_id), /batch_id is not/],
    ['no status', changed(({ submission }) => delete submission.status), /status is missing/],
    ['another status', set({ status: 'not fine' }), /status is not a known SubmissionStatus/],
    ['a bundle inside', set({ bundle: good.bundle }), /bundle belongs beside the submission/],
    [
      'metadata',
      set({ metadata: { schema: 'purl', purl: 'pkg:npm/other' } }),
      /the metadata is not what was attested/,
    ],
    [
      'schema',
      set({ metadata: { ...(good.submission.metadata as JsonObject), schema: 'p' } }),
      /is not what was attested/,
    ],
    ['no metadata', changed(({ submission }) => delete submission.metadata), /metadata is missing/],
    [
      'salt',
      set({ metadata_salt: salt.startsWith('0') ? `1${salt.slice(1)}` : `0${salt.slice(1)}` }),
      /is not what was/,
    ],
    ['salt in capitals', set({ metadata_salt: 'A'.repeat(64) }), /metadata_salt is not 64 lower-case/],
    ['no salt', changed(({ submission }) => delete submission.metadata_salt), /metadata_salt is not 64/],
    ['another attested metadata', set({ attested_metadata: CORRECTED }), /is not what was attested/],
    ['redacted with salt', set({ ...redacted }), /metadata_salt is present, but was redacted/],
    [
      'redacted with metadata',
      set({ metadata_state: 'redacted', redacted_at: '2025-06-08T00:00:00Z' }),
      /more than its schema/,
    ],
    [
      'redacted with attested metadata',
      set({ ...redacted, attested_metadata: INVALID }),
      /attested_metadata is present, but was redacted/,
    ],
    [
      'redacted with errors',
      set({ ...redacted, metadata_errors: [{ path: '/a', message: 'b' }] }),
      /metadata_errors are present, but were redacted/,
    ],
    ['redacted without time', set({ metadata_state: 'redacted' }), /contradict each other/],
    [
      'time of redaction without redaction',
      set({ redacted_at: '2025-06-08T00:00:00Z' }),
      /contradict each other/,
    ],
    [
      'an inexact integer',
      set({ log_index: 2 }).replace('"purl":', '"n":9007199254740993,"purl":'),
      /JSON numbers do not hold/,
    ],
    [
      'no bundle',
      changed((line) => Object.assign(line, { bundle: undefined })),
      /has no submission or no bundle/,
    ],
    ['no submission', JSON.stringify({ bundle: good.bundle }), /has no submission or no bundle/],
    ['null', '{"submission":null,"bundle":null}', /submission must be an object/],
    ['an array', JSON.stringify([good]), /is not one JSON object/],
    ['nothing', '', /the line is empty/],
    ['a cut', JSON.stringify(good).slice(0, -1), /is not JSON, or is cut off/],
    ['garbage after it', `${JSON.stringify(good)}x`, /is not JSON, or is cut off/],
    ['white space after it', `${JSON.stringify(good)} `, /is not one JSON object/],
    ['CR LF', `${JSON.stringify(good)}\r`, /ends with CR LF/],
    ['two byte order marks', `\ufeff\ufeff${JSON.stringify(good)}`, /is not one JSON object/],
    ['NUL', `${JSON.stringify(good)}\0`, /is not JSON/],
    ['a member twice', JSON.stringify(good).replace('"id":', '"id":"x","id":'), /has a member twice/],
    ['deep JSON', `{"submission":${'['.repeat(200_000)}`, /is not JSON/],
    [
      'deep valid JSON',
      `{"submission":${'['.repeat(9_000)}${']'.repeat(9_000)},"bundle":1}`,
      /must be an object/,
    ],
    ['deep metadata', set({ metadata: JSON.parse(`${'{"a":'.repeat(99)}1${'}'.repeat(99)}`) }), /too deep/],
    [
      'a member named __proto__ more',
      JSON.stringify(good).replace('"purl":', '"__proto__":{},"purl":'),
      /is not what was attested/,
    ],
    [
      'metadata in a prototype',
      JSON.stringify(good).replace(/"metadata":(\{[^}]*\})/, '"metadata":{"__proto__":$1}'),
      /is not what was attested/,
    ],
    ['a long line', `{"submission":"${'a'.repeat(1024 * 1024)}"}`, /longer than 1 MiB/],
  ];
  const verify = verifier();
  for (const [what, text, reason] of cases) {
    const found = await verify(utf8(text));
    t.match(found, { verdict: 'not_verified', reason }, what);
    t.equal(found.existedBy, undefined);
  }
  t.match(await verify(Uint8Array.of(0x7b, 0xff, 0x7d)), {
    verdict: 'not_verified',
    reason: /is not text in UTF-8/,
  });
});

t.test('cached results of other lines do not verify a changed one', async (t) => {
  const verify = verifier();
  const text = JSON.stringify(good);
  t.equal((await verify(utf8(text))).verdict, 'verified');
  const { checkpoints, witnesses } = good.bundle as { checkpoints: JsonObject[]; witnesses: JsonObject[] };
  const changes: [what: string, text: string][] = [
    [
      'signature of a checkpoint',
      text.replaceAll(/— live.log.example [^\\]*/g, (line) => `${line.slice(0, -4)}AAA=`),
    ],
    ['evidence', text.replace(String(witnesses[1]!.evidence), String(witnesses[0]!.evidence))],
    ['name of a witness', text.replace('"name":"tsa"', '"name":"log"')],
    ['detail', text.replace('"policy_oid":"', '"policy_oid":"1.')],
    ['log id', text.replace('"keyId":"', '"keyId":"AAAA')],
    ['kind', text.replace('"kind":"rfc3161"', '"kind":"transparency_log"')],
  ];
  t.equal(checkpoints.length, 1);
  for (const [what, change] of changes) {
    t.not(change, text, what);
    t.equal((await verify(utf8(change))).verdict, 'not_verified', what);
  }
  t.equal((await verify(utf8(text))).verdict, 'verified');
});
