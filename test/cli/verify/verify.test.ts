import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ProofBundleSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { toHex } from '../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { createApiKey } from '../../../src/server/keys/api-key.js';
import { restJson } from '../../proof/rest-json.js';
import { ARTIFACT, METADATA, makeSample, makeService, PROJECT, SUBMISSION_ID } from '../../proof/sample.js';
import { FORGERIES } from '../../proof/verify/forgeries.js';
import { futureBundles } from '../../proof/verify/future.js';
import { mine, SECOND_ARTIFACT, STATED } from '../../proof/verify/public-sample.js';
import { changed, good, rootsOf, STEPS, sample, service, trustRoots } from '../../proof/verifying.js';
import { runHere, runProcess } from '../../support/calling/run-cli.js';
import { listen } from '../../support/servers/rpc-server.js';
import { resolvedBy } from '../../support/source/loaded-modules.js';

const DIGEST = `sha256:${toHex(sha256(ARTIFACT))}`;

/** A folder with the artifact, its bundle and trust roots, and the arguments that verify them. */
function folder(t: Test, more: Record<string, string> = {}) {
  const dir = t.testdir({
    artifact: Buffer.from(ARTIFACT),
    'bundle.json': JSON.stringify(good),
    'roots.json': JSON.stringify(trustRoots),
    ...more,
  });
  const at = (name: string) => join(dir, name);
  const args = ['verify', at('artifact'), '--bundle', at('bundle.json'), '--trust-roots', at('roots.json')];
  return { dir, at, args };
}

t.test('a valid bundle ends with exit code 0, the result of each step and a summary', async (t) => {
  const { args, at } = folder(t);
  const { code, stdout, stderr } = await runProcess(args);
  t.match({ code, stderr }, { code: 0, stderr: '' });
  const lines = stdout.split('\n');
  for (const [index, name] of STEPS.entries()) {
    const line = lines.filter((text) => !text.startsWith(' '))[index];
    t.match(line, new RegExp(`^ok +${name} +\\S`), name);
  }
  t.match(
    stdout,
    '\n                           not checked: no metadata was given to compare with\n'.slice(0, 5),
  );
  t.match(stdout, 'not checked: no metadata was given to compare with');
  t.match(stdout, `Trusting the file ${at('roots.json')}\n`);
  t.match(
    lines.at(-2),
    new RegExp(`^This artifact was attested under ${SUBMISSION_ID} by the project ${PROJECT} and existed no`),
  );
});

t.test('a bundle of tomorrow ends with exit code 0 or 2, and what is not known is named', async (t) => {
  const codes = { verified: 0, not_verified: 1, could_not_check: 2 };
  for (const [i, { what, verdict, says, bundle }] of (await futureBundles()).entries()) {
    const { args } = folder(t, { 'bundle.json': JSON.stringify(bundle) });
    const run = i === 0 ? runProcess : runHere;
    t.match(await run(args), { code: codes[verdict], stdout: says }, what);
  }
});

t.test(
  'a forged public statement ends with exit code 1, and nothing of it is printed as proven',
  async (t) => {
    for (const { what, bundle, artifact = ARTIFACT } of FORGERIES) {
      const { args, at } = folder(t, { 'bundle.json': JSON.stringify(bundle) });
      await writeFile(at('artifact'), artifact);
      const { code, stdout } = await runHere([...args, '--json']);
      t.equal(code, 1, what);
      t.match(
        JSON.parse(stdout),
        { verdict: 'not_verified', verified: undefined, statement: undefined },
        what,
      );
    }
  },
);

t.test('what a public statement proves is printed, and its identity can be required', async (t) => {
  const { args, at } = folder(t, { 'bundle.json': JSON.stringify(mine) });
  const { code, stdout } = await runHere(args);
  t.match(
    { code, stdout },
    { code: 0, stdout: /submitted by repo:acme\/app:ref:refs\/heads\/main of https:/ },
  );
  t.match(
    stdout,
    /\nIt states https:\/\/in-toto.io\/attestation\/test-result\/v0.1: \{.*"result":"FAILED"\}\n/,
  );
  await writeFile(at('artifact'), SECOND_ARTIFACT);
  const json = await runHere([
    ...args,
    '--json',
    '--identity',
    'repo:acme/app:*',
    '--issuer',
    STATED.identity.issuer,
  ]);
  t.equal(json.code, 0);
  t.match(JSON.parse(json.stdout), {
    statement: { artifact_name: STATED.artifactName },
    verified: {
      identity: STATED.identity,
      predicate_type: STATED.predicateType,
      predicate: STATED.predicate,
      subjects: [{ name: STATED.artifactName }, STATED.otherSubjects[0]],
    },
  });
  const cases: [flags: string[], code: number, stdout: RegExp][] = [
    [['--identity', 'repo:acme/app'], 1, /not repo:acme\/app of any issuer/],
    [['--issuer', 'https://gitlab.com'], 1, /not a subject of https:\/\/gitlab.com/],
    [['--metadata', JSON.stringify({ schema: 'x', ...STATED.predicate })], 0, /existed no later/],
    [['--metadata', '{"schema":"x","result":"PASSED"}'], 1, /the metadata is not what was attested/],
  ];
  for (const [flags, code, stdout] of cases) t.match(await runHere([...args, ...flags]), { code, stdout });
  const stored = folder(t, { 'bundle.json': JSON.stringify(good) });
  t.match(await runHere([...stored.args, '--identity', '*']), { code: 1, stdout: /names no identity/ });
});

t.test('witnesses that are asked for and not verified end with exit code 1', async (t) => {
  const { args } = folder(t);
  const cases: [demands: string[], code: number, stdout: RegExp][] = [
    [['--min-witnesses', '2'], 0, /existed no later/],
    [['--min-witnesses', '3'], 1, /Not verified: 2 of at least 3 witnesses beside the log are verified\./],
    [['--require-witness', 'tsa', '--require-witness', 'w1'], 0, /existed no later/],
    [['--require-witness', 'log'], 0, /existed no later/],
    [['--require-witness', 'live.log.example'], 0, /existed no later/],
    [['--require-witness', 'tsa', '--require-witness', 'b'], 1, /the witness b, which you require, is not/],
    [['--require-witness', ''], 1, /Not verified/],
    [['--min-witnesses', '2', '--require-witness', 'b'], 1, /the witness b, which you require/],
  ];
  for (const [demands, code, stdout] of cases) {
    t.match(await runHere([...args, ...demands]), { code, stdout }, demands.join(' '));
  }
  for (const count of ['0', '-1', 'x', '1.5', '65', '']) {
    const { code, stderr } = await runHere([...args, '--min-witnesses', count]);
    t.match(
      { code, stderr },
      { code: 2, stderr: /--min-witnesses is not a whole number from 1 to 64/ },
      count,
    );
  }
});

t.test('a witness that could not be checked meets no demand', async (t) => {
  const { bundle } = await makeSample(service, ['log', 'tsa', 'calendar']);
  const { args } = folder(t, { 'bundle.json': JSON.stringify(restJson(ProofBundleSchema, bundle)) });
  t.match(await runHere(args), { code: 0 });
  t.match(await runHere([...args, '--min-witnesses', '2']), { code: 1, stdout: /1 of at least 2/ });
  t.match(await runHere([...args, '--require-witness', 'calendar']), { code: 1 });
});

t.test('the log alone says no time, and the exit code is that of the policy', async (t) => {
  const { bundle } = await makeSample(service, ['log']);
  const { args } = folder(t, {
    'bundle.json': JSON.stringify(restJson(ProofBundleSchema, bundle)),
    'roots.json': JSON.stringify(
      rootsOf(service, { policies: [{ environment: Environment.LIVE, version: 1 }] }),
    ),
  });
  t.match(await runHere(args), { code: 0, stdout: /; no witness says when\.\n$/ });
  t.match(await runHere([...args, '--min-witnesses', '1']), { code: 1, stdout: /0 of at least 1 witnesses/ });
});

t.test(
  '--json has the metadata under verified, if it is what was attested, and never otherwise',
  async (t) => {
    const { args } = folder(t);
    const opened = ['--metadata', JSON.stringify(METADATA), '--metadata-salt', toHex(sample.salt)];
    const found = await runHere([...args, ...opened, '--json']);
    t.strictSame([found.code, JSON.parse(found.stdout).verified], [0, { metadata: METADATA }]);
    const others: [what: string, code: number, more: string[]][] = [
      ['without metadata', 0, []],
      ['of another project', 1, [...opened, '--project', 'prj_01JX5WQ0ZZZZZZZZZZZZZZZZZ0']],
      ['with other metadata', 1, ['--metadata', '{"schema":"purl"}', ...opened.slice(2)]],
      ['without a witness', 1, [...opened, '--require-witness', 'b']],
    ];
    for (const [what, code, more] of others) {
      const other = await runHere([...args, ...more, '--json']);
      t.strictSame([other.code, 'verified' in JSON.parse(other.stdout)], [code, false], what);
    }
  },
);

t.test('--project requires an attestation of that project', async (t) => {
  const { args } = folder(t);
  t.match(await runHere(args), { code: 0, stdout: /not checked: no project was asked for/ });
  const asked = await runHere([...args, '--project', PROJECT]);
  t.match(asked, { code: 0, stdout: `by the project ${PROJECT} and` });
  t.notMatch(asked.stdout, 'no project was asked for');
  const other = await runHere([...args, '--project', 'prj_01JX5WQ0ZZZZZZZZZZZZZZZZZ0', '--json']);
  t.equal(other.code, 1);
  t.match(JSON.parse(other.stdout), {
    verdict: 'not_verified',
    steps: [{ status: 'passed' }, { name: 'statement', status: 'failed', code: 'project.mismatch' }],
  });
  for (const id of ['', 'first project', PROJECT.toLowerCase()]) {
    const { code, stdout, stderr } = await runHere([...args, '--project', id]);
    t.match(
      { code, stdout, stderr },
      { code: 2, stdout: '', stderr: /--project is not the id of a project/ },
    );
  }
});

t.test('another artifact, a changed bundle or other trust roots end with exit code 1', async (t) => {
  const other = await makeService(join(t.testdir({ other: {} }), 'other'));
  const otherRoots = rootsOf(other);
  const { args, at } = folder(t, {
    wrong: 'another artifact',
    'changed.json': JSON.stringify(
      changed(({ batch }) => {
        batch.root_hash = '00'.repeat(32);
      }),
    ),
    'other.json': JSON.stringify(otherRoots),
  });
  const roots = ['--trust-roots', at('roots.json')];
  const bundle = ['--bundle', at('bundle.json')];
  for (const [name, wrong] of [
    ['artifact', ['verify', at('wrong'), ...bundle, ...roots]],
    ['digest', ['verify', `sha256:${'0'.repeat(64)}`, ...bundle, ...roots]],
    ['bundle', ['verify', DIGEST, '--bundle', at('changed.json'), ...roots]],
    ['trust', ['verify', DIGEST, ...bundle, '--trust-roots', at('other.json')]],
    ['environment', [...args, '--environment', 'test']],
  ] as const) {
    const { code, stdout, stderr } = await runHere(wrong);
    t.match({ code, stderr }, { code: 1, stderr: '' }, name);
    t.match(stdout, /^FAILED /m, name);
    t.match(stdout.trimEnd().split('\n').at(-1), /^Not verified: /, name);
  }
});

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

t.test('metadata that differs from its text is rejected', async (t) => {
  const { args, at } = folder(t, { 'twice.json': '{"schema":"purl","schema":"other"}' });
  const file = at('latin1.json');
  await writeFile(file, Buffer.from('{"schema":"caf\u00e9"}', 'latin1'));
  for (const [metadata, message] of [
    [`@${at('twice.json')}`, 'has a member twice'],
    ['{"schema":"purl","schema":"other"}', 'has a member twice'],
    [`@${file}`, 'is not text in UTF-8'],
    ['[]', 'is not a JSON object'],
  ] as const) {
    const refused = await runHere([...args, '--metadata', metadata, '--metadata-salt', '00']);
    t.same(refused, { code: 2, stdout: '', stderr: `error: --metadata ${message}\n` }, metadata);
  }
});

t.test('metadata is verified by its salt', async (t) => {
  const { args, at } = folder(t, { 'metadata.json': JSON.stringify(METADATA) });
  const salt = toHex(sample.salt);
  const opened = await runHere([...args, '--metadata', `@${at('metadata.json')}`, '--metadata-salt', salt]);
  t.match(opened, { code: 0 });
  const other = JSON.stringify({ ...METADATA, purl: 'pkg:npm/other' });
  const refused = await runHere([...args, '--metadata', other, '--metadata-salt', salt]);
  t.match(refused, { code: 1, stdout: /metadata is not what was attested/ });
});

t.test('a bundle of the test environment is accepted only with its flag', async (t) => {
  const service = await makeService(join(t.testdir({ test: {} }), 'test'), 'test');
  const { bundle } = await makeSample(service);
  const { args } = folder(t, {
    'bundle.json': JSON.stringify(restJson(ProofBundleSchema, bundle)),
    'roots.json': JSON.stringify(rootsOf(service)),
  });
  t.match(await runHere(args), { code: 1, stdout: /is of the test environment, not live/ });
  t.match(await runHere([...args, '--environment', 'test']), { code: 0, stdout: /\(test\)/ });
});

t.test('--json prints the findings, and no claim that is not proven', async (t) => {
  const { args, at } = folder(t, { wrong: 'another artifact' });
  const { code, stdout } = await runHere([...args, '--json']);
  t.equal(code, 0);
  const found = JSON.parse(stdout);
  t.match(found, {
    verdict: 'verified',
    summary: /^This artifact was attested under /,
    trust_roots: `the file ${at('roots.json')}`,
    existed_by: '2025-06-07T12:00:02.000Z',
    statement: { submission_id: SUBMISSION_ID, environment: 'live', artifact_sha256: DIGEST.slice(7) },
  });
  t.same(
    found.steps.map(({ name }: { name: string }) => name),
    STEPS,
  );
  t.ok(found.witnesses.every((witness: object) => 'tree_size' in witness && 'name' in witness));
  const wrong = await runHere(['verify', at('wrong'), ...args.slice(2), '--json']);
  t.equal(wrong.code, 1);
  t.match(JSON.parse(wrong.stdout), { verdict: 'not_verified', existed_by: undefined, statement: undefined });
  const error = await runHere(['verify', at('gone'), ...args.slice(2), '--json']);
  t.equal(error.code, 2);
  t.match(JSON.parse(error.stderr), { error: { code: 'command.usage', message: /ENOENT/ } });
});

t.test('without a local copy trust roots are fetched from the service, which is reported', async (t) => {
  let answer = { status: 200, body: JSON.stringify(trustRoots) };
  const paths: unknown[] = [];
  const url = await listen(
    t,
    createServer(({ url }, response) => {
      paths.push(url);
      response.writeHead(answer.status, { location: '/elsewhere' }).end(answer.body);
    }),
  );
  const { at, dir } = folder(t, { 'credentials.json': credentials(url) });
  const args = ['verify', at('artifact'), '--bundle', at('bundle.json')];
  const origins: [flags: string[], env: Record<string, string>, path: string, from: string][] = [
    [['--verify-url', `${url}/v`], {}, '/v/trust_roots.json', '--verify-url'],
    [
      [],
      { ATTEST_VERIFY_URL: url, ATTEST_URL: 'http://127.0.0.1:9' },
      '/trust_roots.json',
      'ATTEST_VERIFY_URL',
    ],
    [[], { ATTEST_URL: url }, '/verify/trust_roots.json', 'ATTEST_URL'],
    [['--data-dir', dir], {}, '/mirror/trust_roots.json', at('credentials.json')],
  ];
  for (const [flags, env, path, from] of origins) {
    const { code, stdout } = await runHere([...args, ...flags], { env });
    t.equal(code, 0, from);
    t.equal(paths.at(-1), path);
    const said = `Trusting ${url}${path}, fetched now and trusted as served (address from ${from})\n`;
    t.ok(stdout.includes(said), said);
  }
  for (const [status, body, message] of [
    [404, '', /HTTP 404/],
    [302, '', /cannot be fetched/],
    [200, '<html>', /are not valid JSON/],
    [200, ' '.repeat(4 * 1024 * 1024 + 1), /larger than 4 MiB/],
  ] as const) {
    answer = { status, body };
    const { code, stderr } = await runHere([...args, '--verify-url', url]);
    t.equal(code, 2);
    t.match(stderr, message);
  }
});

t.test('texts in a bundle cannot control the terminal', async (t) => {
  const hostile = { ...good, 'tsa\u001b[2J\u202eok': 1 };
  const { args } = folder(t, { 'bundle.json': JSON.stringify(hostile) });
  const { stdout } = await runHere(args);
  t.match(stdout, /tsa.\[2J.ok/);
  t.notOk(['\u001b', '\u202e'].some((text) => stdout.includes(text)));
});

t.test('verifying loads no server code', async (t) => {
  const { args } = folder(t);
  const main = new URL('../../../src/main.js', import.meta.url).href;
  const loaded = await resolvedBy(
    `process.argv = ${JSON.stringify(['node', 'attest', ...args])};\nawait import(${JSON.stringify(main)});`,
  );
  t.match(loaded, '/proof/verify/verify.', 'what is loaded can be seen');
  for (const name of ['/fastify/', '/nats/', '/postgres/', '/store/', '/pipeline/', '/http/']) {
    t.notOk(loaded.includes(name), name);
  }
});

function credentials(url: string): string {
  const key = createApiKey(Environment.LIVE, randomBytes);
  return JSON.stringify({ base_url: url, verify_url: `${url}/mirror`, live_key: key, test_key: key });
}
