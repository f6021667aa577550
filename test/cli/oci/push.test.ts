/** `attest push` to registries without and with the referrers API. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startDockerRegistry } from '../../support/registries/docker-registry.js';
import { call, getJson, type TestRegistry } from '../../support/registries/image.js';
import { INDEX, startReferrersRegistry } from '../../support/registries/referrers-registry.js';
import { findFreePort } from '../../support/servers/free-port.js';
import { REPOSITORY, SIGSTORE, startService } from './attested-image.js';

const { attest, submit, attestImage, writeBundle } = await startService(t);
const REGISTRIES: Record<string, TestRegistry> = {
  'without the referrers API': { host: await startDockerRegistry(t) },
  'with the referrers API': { host: (await startReferrersRegistry(t)).host },
};
const docker = REGISTRIES['without the referrers API'] as TestRegistry;

/** The referrers of an image, as a client finds them. */
async function referrersOf(registry: TestRegistry, digest: string): Promise<{ digest: string }[]> {
  const index =
    (await getJson(registry, `${REPOSITORY}/referrers/${digest}`)) ??
    (await getJson(registry, `${REPOSITORY}/manifests/${digest.replace(':', '-')}`));
  return index?.manifests ?? [];
}

for (const [what, registry] of Object.entries(REGISTRIES)) {
  t.test(`a bundle is attached once, from file or service, to a registry ${what}`, async (t) => {
    const { digest, id, image, name } = await attestImage(registry);
    const first = await attest(['push', image, id]);
    t.same(first, { code: 0, stdout: `${id}  attached  ${name}\n`, stderr: '' });
    const [descriptor] = await referrersOf(registry, digest);
    t.match(descriptor, {
      artifactType: SIGSTORE,
      annotations: {
        'dev.sigstore.bundle.content': 'dsse-envelope',
        'dev.sigstore.bundle.predicateType': 'urn:attestation-service:submission:v1',
        'org.opencontainers.image.created': /^\d{4}-\d{2}-\d{2}T.*Z$/,
      },
    });
    const manifest = await getJson(registry, `${REPOSITORY}/manifests/${descriptor?.digest}`);
    t.match(manifest, {
      schemaVersion: 2,
      artifactType: SIGSTORE,
      config: { mediaType: 'application/vnd.oci.empty.v1+json', size: 2 },
      layers: [{ mediaType: SIGSTORE }],
      subject: { mediaType: 'application/vnd.oci.image.manifest.v1+json', digest },
    });
    const blob = await getJson(registry, `${REPOSITORY}/blobs/${manifest.layers[0].digest}`);
    t.match(blob, { mediaType: SIGSTORE, dsseEnvelope: { payloadType: 'application/vnd.in-toto+json' } });

    const dir = t.testdir();
    const files = [await writeBundle(dir, id), await writeBundle(dir, id, 'sigstore.json')];
    for (const source of [[id], ...files.map((file) => ['--bundle', file])]) {
      const again = await attest(['push', image, ...source, '--json']);
      t.equal(again.code, 0, again.stderr);
      const line = { image: name, referrer: descriptor?.digest, was_there: true, submission_id: id };
      t.same(JSON.parse(again.stdout), line, source.join(' '));
    }
    t.equal((await referrersOf(registry, digest)).length, 1);
  });

  t.test(`further bundles are further referrers, in a registry ${what}`, async (t) => {
    const { digest, id, image } = await attestImage(registry);
    const ids = [id, await submit(digest)];
    for (const one of ids) t.match(await attest(['push', image, one]), { code: 0, stdout: / attached / });
    t.equal((await referrersOf(registry, digest)).length, 2);
  });
}

t.test('a push that ended between manifest and index is completed by the next', async (t) => {
  const { digest, id, image } = await attestImage(docker);
  await attest(['push', image, id]);
  const tag = digest.replace(':', '-');
  const empty = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests: [] }));
  await call(docker, 'PUT', `${REPOSITORY}/manifests/${tag}`, { body: empty, type: INDEX });
  t.match(await attest(['push', image, id]), { code: 0, stdout: / attached / });
  t.equal((await referrersOf(docker, digest)).length, 1);
});

t.test('a tag that is taken for something else is left as it is', async (t) => {
  const { digest, id, image } = await attestImage(docker);
  const path = `${REPOSITORY}/manifests/${digest.replace(':', '-')}`;
  const taken = await call(docker, 'GET', `${REPOSITORY}/manifests/${digest}`);
  const body = Buffer.from(await taken.arrayBuffer());
  await call(docker, 'PUT', path, { body, type: taken.headers.get('content-type') ?? '' });
  t.match(await attest(['push', image, id]), { code: 1, stderr: /the tag sha256-\w+ of .* is no index/ });
  t.same(await getJson(docker, path), JSON.parse(String(body)));
});

t.test('a tag is resolved, and its digest printed', async (t) => {
  const { id, name } = await attestImage(docker);
  const tagged = `${docker.host}/${REPOSITORY}:1.0`;
  t.same(await attest(['push', tagged, id]), {
    code: 0,
    stdout: `${id}  attached  ${name}\n`,
    stderr: `${tagged} is ${name}\n`,
  });
});

t.test('a bundle about another digest is not attached', async (t) => {
  const { id } = await attestImage(docker);
  const { image, digest } = await attestImage(docker);
  for (const one of [image, `${docker.host}/${REPOSITORY}:1.0`]) {
    const said = await attest(['push', one, id]);
    t.match(said, { code: 2, stdout: '', stderr: `(${id}), not about ${digest}` }, one);
  }
  t.same(await referrersOf(docker, digest), []);
});

t.test('what is no bundle, image or combination of flags is said', async (t) => {
  const { id, image } = await attestImage(docker);
  const dir = t.testdir({
    'empty.json': '',
    'array.json': '[]',
    'other.json': '{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json"}',
  });
  const foreign = { payload: Buffer.from('{"_type":"x"}').toString('base64') };
  const file = join(dir, 'foreign.json');
  writeFileSync(file, JSON.stringify({ mediaType: SIGSTORE, dsseEnvelope: foreign }));
  const free = await findFreePort();
  const missing = image.replace(/sha256:.*/, `sha256:${'0'.repeat(64)}`);
  const cases: [string[], number, RegExp | string][] = [
    [[image], 2, 'give either a submission ID or --bundle'],
    [[image, id, '--bundle', 'x'], 2, 'give either a submission ID or --bundle'],
    [[image, '--bundle', 'x', '--wait'], 2, '--wait is for a submission ID'],
    [[image, '--bundle', join(dir, 'none.json')], 2, 'cannot be read'],
    [[image, '--bundle', join(dir, 'empty.json')], 2, 'cannot be pushed: is empty'],
    [[image, '--bundle', join(dir, 'array.json')], 2, 'is neither a proof bundle nor a Sigstore bundle'],
    [[image, '--bundle', join(dir, 'other.json')], 2, 'is neither a proof bundle nor a Sigstore bundle'],
    [[image, '--bundle', file], 2, 'cannot be pushed: '],
    [[missing, id], 2, 'not about sha256:000'],
    [[`${docker.host}/${REPOSITORY}:none`, id], 1, `there is no image none in ${docker.host}/${REPOSITORY}`],
    [[`${docker.host}/none:1`, id], 1, 'there is no image 1'],
    [['app:1.0', id], 2, 'it names no registry'],
    [[image, 'sub_none'], 2, 'sub_none is not a submission ID'],
    [[image, `sub_${'0'.repeat(26)}`], 1, 'submission.not_found'],
    [
      [image.replace(/127.*?\//, `127.0.0.1:${free}/`), id],
      1,
      /127\.0\.0\.1:\d+ cannot be reached: .*ECONNREFUSED/,
    ],
    [
      [image.replace(/127.*?\//, 'registry.invalid/'), id],
      1,
      /registry\.invalid cannot be reached: .*(ENOTFOUND|EAI_AGAIN)/,
    ],
  ];
  for (const [args, code, stderr] of cases)
    t.match(await attest(['push', ...args]), { code, stderr }, args.slice(1).join(' '));
});
