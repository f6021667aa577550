/** Lines of an export as they may be, and the trust that decides. */
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import type { LineOptions } from '../../../src/proof/export/verify-line.js';
import { makeService, PROJECT } from '../sample.js';
import { rootsOf } from '../verifying.js';
import type { Line } from './export-sample.js';
import {
  batch,
  CORRECTED,
  changed,
  deep,
  foreign,
  good,
  INVALID,
  OTHER_PROJECT,
  verifier,
} from './line-sample.js';

t.test('a line verifies, with its place and proven time', async (t) => {
  const found = await verifier({ project: PROJECT })(utf8(JSON.stringify(good)));
  t.strictSame(found, {
    verdict: 'verified',
    reason: '',
    existedBy: new Date('2025-06-07T12:00:02.000Z'),
    facts: {
      submissionId: good.submission.id,
      project: PROJECT,
      batchId: batch!.id,
      log: 'live.log.example',
      logIndex: 2,
      firstIndex: 0,
      treeSize: 5,
      schema: 'purl',
    },
  });
});

t.test('a byte order mark before a line is ignored', async (t) => {
  t.match(await verifier()(utf8(`\ufeff${JSON.stringify(good)}`)), { verdict: 'verified', reason: '' });
});

t.test('deep metadata, a correction and a redaction verify', async (t) => {
  const { metadata_salt: _, ...unsalted } = good.submission;
  const redactedAt = '2025-06-08T00:00:00Z';
  const redacted = {
    ...unsalted,
    metadata: { schema: 'purl' },
    metadata_state: 'redacted',
    redacted_at: redactedAt,
  };
  const lines: Line[] = [
    deep!.lines[0]!,
    { ...good, submission: redacted },
    { ...good, submission: { ...redacted, metadata: { schema: 'another' } } },
    {
      ...foreign!.lines[0]!,
      submission: { ...foreign!.lines[0]!.submission, metadata: CORRECTED, attested_metadata: INVALID },
    },
  ];
  for (const line of lines)
    t.match(await verifier()(utf8(JSON.stringify(line))), { verdict: 'verified', reason: '' });
});

t.test('members of a line that are not known are named and ignored', async (t) => {
  const line = structuredClone(good) as unknown as Record<string, JsonObject>;
  Object.assign(line.submission!, { more: { of: ['it'] } });
  Object.assign(line.bundle!, { more: 1 });
  const found = await verifier()(utf8(JSON.stringify({ ...line, more: 1 })));
  t.match(found, { verdict: 'verified', ignored: ['/more', '/submission/more', '/bundle/more'] });
});

t.test('trust decides as for a bundle, and a bundle of another version cannot be checked', async (t) => {
  const text = utf8(JSON.stringify(good));
  const other = rootsOf(await makeService(t.testdir()));
  for (const [what, options, reason] of [
    ['trust roots of another service', { trustRoots: other }, /the signing key is not in the trust roots/],
    ['the other environment', { environment: 'test' }, /is of the live environment, not test/],
    ['another project', { project: OTHER_PROJECT }, /attested it, not prj_/],
    ['a policy', { policy: { required: ['w1'] } }, /the required witness w1 has not vouched/],
  ] as [string, Partial<LineOptions>, RegExp][]) {
    t.match(await verifier(options)(text), { verdict: 'not_verified', reason }, what);
  }
  const version = changed(({ bundle }) => {
    bundle.media_type = 'application/vnd.attestation-service.bundle.v2+json';
  });
  t.match(await verifier()(utf8(version)), {
    verdict: 'could_not_check',
    reason: /another version of this verifier/,
  });
  t.match(await verifier({ trustRoots: [] })(text), {
    verdict: 'could_not_check',
    reason: /trust roots cannot be read/,
  });
});
