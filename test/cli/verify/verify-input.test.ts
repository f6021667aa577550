/** Files and arguments that cannot be read, or are not what they are given as. */
import { randomBytes } from 'node:crypto';
import t from 'tap';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { toHex } from '../../../src/proof/bytes/encoding.js';
import { createApiKey } from '../../../src/server/keys/api-key.js';
import { METADATA, SUBMISSION_ID } from '../../proof/sample.js';
import { good, sample, trustRoots } from '../../proof/verifying.js';
import { runHere } from '../../support/calling/run-cli.js';
import { DIGEST, folder } from './artifact-folder.js';

t.test('a bundle that cannot be checked ends with exit code 2 and the reason', async (t) => {
  const { args, at, dir } = folder(t, {
    'no-json': '{',
    'no-roots': '[]',
    twice: `{"policies":[],${JSON.stringify(trustRoots).slice(1)}`,
  });
  const bundle = ['--bundle', at('bundle.json')];
  const roots = ['--trust-roots', at('roots.json')];
  const table: [args: readonly string[], message: RegExp][] = [
    [['verify', at('gone'), ...bundle, ...roots], /^error: .*gone cannot be read: ENOENT/],
    [['verify', '-', ...bundle, ...roots], /^error: - cannot be read: .* \(standard input is \/dev\/stdin\)/],
    [['verify', dir, ...bundle, ...roots], /^error: .* is a directory/],
    [['verify', DIGEST, '--bundle', at('gone'), ...roots], /^error: .*gone cannot be read: ENOENT/],
    [['verify', DIGEST, '--bundle', dir, ...roots], /^error: .* is a directory/],
    [
      ['verify', DIGEST, '--bundle', '/dev/zero', ...roots],
      /^error: \/dev\/zero is too large for a bundle: over 4 MiB/,
    ],
    [['verify', DIGEST, ...bundle, '--trust-roots', at('gone')], /^error: .*gone cannot be read: ENOENT/],
    [['verify', DIGEST, ...bundle, '--trust-roots', dir], /^error: .* is a directory/],
    [
      ['verify', DIGEST, ...bundle, '--trust-roots', '/dev/zero'],
      /^error: \/dev\/zero is too large for trust roots: over 4 MiB/,
    ],
    [
      ['verify', DIGEST, ...bundle, '--trust-roots', at('no-json')],
      /^error: trust roots in .* are not valid JSON/,
    ],
    [['verify', 'sha256:00', ...bundle, ...roots], /^error: sha256: is not followed by 64 hex digits/],
    [
      ['verify', DIGEST, ...bundle, '--data-dir', dir],
      /^error: there are no trust roots: give --trust-roots/,
    ],
    [['verify', DIGEST, ...bundle, '--verify-url', 'x'], /^error: One setting is wrong:\n {2}--verify-url/],
    [
      ['verify', DIGEST, ...bundle, '--verify-url', 'http://127.0.0.1:9'],
      /^error: trust roots cannot be fetched/,
    ],
    [[...args, '--metadata', 'x', '--metadata-salt', '00'], /^error: --metadata is not JSON/],
    [
      [...args, '--metadata', '{"ns":1763812345678901234}', '--metadata-salt', '00'],
      /^error: --metadata: \/ns is an integer that JSON numbers do not hold exactly/,
    ],
    [
      ['verify', DIGEST, ...bundle, '--trust-roots', at('twice')],
      /^error: trust roots in .* are not valid JSON: the text has a member twice/,
    ],
  ];
  for (const [wrong, message] of table) {
    const { code, stdout, stderr } = await runHere(wrong);
    t.equal(code, 2, wrong.join(' '));
    t.equal(stdout, '');
    t.match(stderr, message);
  }
  for (const name of ['no-roots', 'bundle.json']) {
    const unreadable = await runHere(['verify', DIGEST, ...bundle, '--trust-roots', at(name)]);
    t.match(unreadable, { code: 2, stdout: /\nCould not be checked: the trust roots cannot be read/ }, name);
  }
});

t.test('a file that is no bundle ends with exit code 2, named as what it is', async (t) => {
  const bundle = JSON.stringify(good);
  const submission = { id: SUBMISSION_ID, leaf_sha256: 'ab'.repeat(32) };
  const { at } = folder(t, {
    cut: bundle.slice(0, -9),
    several: `${bundle}\n${bundle}\n`,
    lines: `${JSON.stringify({ submission, bundle: good })}\n`.repeat(2),
    submission: JSON.stringify(submission),
    sigstore: JSON.stringify(good.sigstore_bundle),
    empty: '',
    binary: '\xff\xfe',
  });
  for (const [name, reason] of [
    ['cut', /is not JSON, or is cut off/],
    ['several', /holds several documents, one a line \(JSONL\): give one bundle/],
    ['lines', /holds the lines of an export: attest verify --export checks them/],
    ['submission', /is a submission without a bundle: fetch that with attest bundle ID/],
    ['sigstore', /is a Sigstore bundle/],
    ['artifact', /is not JSON/],
    ['empty', /is empty/],
    ['binary', /is not JSON/],
  ] as const) {
    const ended = await runHere(['verify', DIGEST, '--bundle', at(name), '--trust-roots', at('roots.json')]);
    t.match(ended, { code: 2, stderr: '' }, name);
    t.match(ended.stdout.trimEnd().split('\n').at(-1), /^Could not be checked: the bundle /, name);
    t.match(ended.stdout, reason, name);
  }
});

t.test('files of JSON may begin with a byte order mark', async (t) => {
  const { args, at, dir } = folder(t, {
    'bundle.json': `\ufeff${JSON.stringify(good)}`,
    'roots.json': `\ufeff${JSON.stringify(trustRoots)}`,
    'metadata.json': `\ufeff${JSON.stringify(METADATA)}`,
    'credentials.json': `\ufeff${JSON.stringify({
      base_url: 'http://127.0.0.1:9',
      verify_url: 'http://127.0.0.1:9/verify',
      live_key: createApiKey(Environment.LIVE, randomBytes),
      test_key: createApiKey(Environment.TEST, randomBytes),
    })}`,
  });
  const metadata = ['--metadata', `@${at('metadata.json')}`, '--metadata-salt', toHex(sample.salt)];
  t.match(await runHere([...args, ...metadata]), { code: 0, stderr: '' });
  const fetched = await runHere([...args.slice(0, -2), '--data-dir', dir]);
  t.match(fetched, { code: 2, stderr: /trust roots cannot be fetched from http:\/\/127\.0\.0\.1:9/ });
});
