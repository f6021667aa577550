/** `attest submit --oci`, with --push. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { PackageURL } from 'packageurl-js';
import t from 'tap';
import { putImage } from '../../support/registries/image.js';
import { startReferrersRegistry } from '../../support/registries/referrers-registry.js';
import { REPOSITORY, SIGSTORE, startService } from './attested-image.js';

const { attest } = await startService(t);
let isReadOnly = false;
const registry = await startReferrersRegistry(t, ({ method }, response) => {
  if (!isReadOnly || method !== 'PUT') return false;
  response.writeHead(403).end();
  return true;
});
const name = `${registry.host}/${REPOSITORY}`;

const referrersOf = (digest: string) =>
  [...registry.manifests].filter(([key, { bytes }]) => {
    const { artifactType, subject } = JSON.parse(String(bytes));
    return key.startsWith('sha256:') && artifactType === SIGSTORE && subject?.digest === digest;
  });
const REPORT = '<testsuite name="s" tests="1"><testcase name="a" classname="b"/></testsuite>';
const linesOf = (stdout: string) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

t.test('an image is submitted by its digest, with its package URL', async (t) => {
  const digest = await putImage(registry, REPOSITORY, '1.0');
  const said = await attest(['submit', '--oci', `oci://${name}:1.0`, '--wait', '--json']);
  t.match(said, { code: 0, stderr: `${name}:1.0 is ${name}@${digest}` });
  const [{ file, submission, referrer }] = linesOf(said.stdout);
  t.equal(file, `${name}@${digest}`);
  t.equal(submission.artifact.sha256, digest.slice(7));
  t.match(PackageURL.fromString(submission.metadata.purl), {
    type: 'oci',
    name: 'app',
    version: digest,
    qualifiers: { repository_url: name, tag: '1.0' },
  });
  t.equal(referrer, undefined);
  t.same(referrersOf(digest), []);
});

t.test('with --push each image has the bundle of its submission, beside other files', async (t) => {
  const digests = [await putImage(registry, REPOSITORY, '1'), await putImage(registry, REPOSITORY, '2')];
  const images = digests.flatMap((digest) => ['--oci', `${name}@${digest}`]);
  const dir = t.testdir({ file: 'x' });
  const args = ['submit', join(dir, 'file'), ...images, '--build', 'b1', '--wait', '--push'];
  const said = await attest([...args, '--json']);
  t.equal(said.code, 0, said.stderr);
  const [file, ...lines] = linesOf(said.stdout);
  t.equal(file.referrer, undefined);
  t.same(
    lines.map(({ was_there }) => was_there),
    [false, false],
  );
  for (const [i, digest] of digests.entries())
    t.same(
      referrersOf(digest).map(([key]) => key),
      [lines[i].referrer],
    );
  const again = await attest(args);
  t.match(again, { code: 0, stderr: `${lines[0].submission.id} was attached to ${name}@${digests[0]}` });
});

t.test(
  'an image that cannot be pushed to is an error of it alone; its submission and bundle are there',
  async (t) => {
    const digest = await putImage(registry, REPOSITORY, '1.0');
    const dir = t.testdir({ file: 'x' });
    isReadOnly = true;
    t.teardown(() => (isReadOnly = false));
    const bundles = join(dir, 'bundles');
    const args = [
      'submit',
      join(dir, 'file'),
      '--oci',
      `${name}@${digest}`,
      '--wait',
      '--push',
      '--bundles',
      bundles,
    ];
    const said = await attest([...args, '--json']);
    t.equal(said.code, 1);
    const [file, image] = linesOf(said.stdout);
    t.match(file, { submission: { status: 'witnessed' } });
    t.match(image, { error: { message: /does not allow this in/ }, submission: { status: 'witnessed' } });
    t.ok(existsSync(image.bundle_file));
  },
);

t.test(
  'of a private test result the report is the subject, so nothing is attached to an image',
  async (t) => {
    const digest = await putImage(registry, REPOSITORY, '1.0');
    const report = join(t.testdir({ 'report.xml': REPORT }), 'report.xml');
    const args = ['submit', '--junit', report, '--oci', `${name}@${digest}`, '--wait', '--json'];
    t.match(await attest([...args, '--push']), { code: 2, stderr: /--push with --junit needs --public/ });
    const said = await attest(args);
    const [{ submission }] = linesOf(said.stdout);
    t.match(submission.metadata.configuration, [
      { name: `${name}@${digest}`, digest: { sha256: digest.slice(7) } },
    ]);
  },
);

t.test('a public test result names the image, and is attached to it', async (t) => {
  const digest = await putImage(registry, REPOSITORY, '1.0');
  const report = join(t.testdir({ 'report.xml': REPORT }), 'report.xml');
  const args = ['submit', '--junit', report, '--oci', `${name}@${digest}`, '--wait', '--push'];
  const said = await attest([...args, '--public']);
  t.match(said, { code: 0, stderr: `attached to ${name}@${digest}` });
  const [[, stored] = []] = referrersOf(digest);
  t.match(JSON.parse(String(stored?.bytes)), {
    annotations: { 'dev.sigstore.bundle.predicateType': 'https://in-toto.io/attestation/test-result/v0.1' },
  });
});

t.test("a public statement with metadata of one's own is attached to each of its images", async (t) => {
  const digests = [await putImage(registry, REPOSITORY, '1'), await putImage(registry, REPOSITORY, '2')];
  const images = digests.flatMap((digest) => ['--oci', `${name}@${digest}`]);
  const metadata = JSON.stringify({
    schema: 'intoto.test_result.v0.1',
    result: 'PASSED',
    configuration: [{ name: 'image', digest: { sha256: digests[0]?.slice(7) } }],
  });
  const said = await attest(['submit', ...images, '--public', '--metadata', metadata, '--wait', '--push']);
  t.equal(said.code, 0, said.stderr);
  for (const digest of digests) t.equal(referrersOf(digest).length, 1);
});

t.test('wrong combinations and images are found before anything is submitted', async (t) => {
  const digest = await putImage(registry, REPOSITORY, '1.0');
  const image = `${name}@${digest}`;
  const dir = t.testdir({ folder: { a: 'x' } });
  const folder = join(dir, 'folder');
  const cases: [string[], RegExp][] = [
    [['--oci', image, '--push'], /--push needs --oci and --wait/],
    [[folder, '--push', '--wait'], /--push needs --oci and --wait/],
    [[folder, '--oci', image], /is a directory: submit it alone/],
    [['--eval', folder, '--oci', image], /--eval does not go with --oci/],
    [['--snapshots', folder, '--oci', image], /--snapshots does not go with --oci/],
    [['--oci', 'app'], /names no registry/],
    [['--oci', image, '--oci', `${name}:none`], /there is no image none/],
  ];
  for (const [args, stderr] of cases)
    t.match(await attest(['submit', ...args]), { stdout: '', stderr }, args.join(' '));
});
