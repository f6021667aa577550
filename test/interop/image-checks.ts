/** Bundles that `attest push` attached to images, for cosign and oras, in registries with and without the referrers API. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startDockerRegistry } from '../support/registries/docker-registry.js';
import { putImage } from '../support/registries/image.js';
import { attest } from '../support/servers/up.js';
import { codeBlocks } from '../support/source/pages.js';
import { accepting, type Row, refusing } from './rows.js';
import type { Scene } from './scene.js';
import { CHECKOUT, paste, tool } from './tools.js';

type Teardown = { teardown: (stop: () => unknown) => void };

/** The lines of docs/verifying.md accept the image that has a bundle, and no other; oras finds it. */
export async function checkImages(scene: Scene): Promise<Row[]> {
  const stops: (() => unknown)[] = [];
  const after = { teardown: (stop: () => unknown) => void stops.push(stop) };
  try {
    return [
      ...(await checkRegistry(scene, 'with referrers', await startGoRegistry(after))),
      ...(await checkRegistry(scene, 'without referrers', await startDockerRegistry(after))),
    ];
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

async function checkRegistry({ dir, service }: Scene, what: string, host: string): Promise<Row[]> {
  const data = join(dir, 'data');
  const folder = join(dir, `images ${what}`);
  await mkdir(folder);
  const digest = await putImage({ host }, 'acme/app', '1.0');
  const other = await putImage({ host }, 'acme/app', '2.0');
  const id = attest('submit', digest, '--wait', '--quiet', '--data-dir', data).trim();
  const pushed = attest('push', `oci://${host}/acme/app@${digest}`, id, '--json', '--data-dir', data);
  // One bundle of a public statement, whose further subjects are two images.
  const report = join(folder, 'report.xml');
  await writeFile(report, '<testsuite name="s" tests="1"><testcase name="a" classname="b"/></testsuite>');
  const tested = [await putImage({ host }, 'acme/app', '3.0'), await putImage({ host }, 'acme/app', '4.0')];
  const named = tested.flatMap((image) => ['--oci', `${host}/acme/app@${image}`]);
  attest('submit', '--junit', report, ...named, '--public', '--wait', '--push', '--data-dir', data);
  const blocks = await codeBlocks(join(CHECKOUT, 'docs/verifying.md'), 'sh');
  const lines = blocks.find((block) => block.includes('cosign verify-attestation')) ?? 'false';
  const verify = (image: string, script = lines) =>
    paste(script, folder, { VERIFY_URL: service.verifyUrl, IMAGE: `${host}/acme/app@${image}` });
  const good = await verify(digest);
  const asTest = lines.replace('"live"', '"test"');
  const asOther = lines.replace('submission:v1', 'submission:v2');
  const asResult = lines.replace(/urn:\S+/, 'https://in-toto.io/attestation/test-result/v0.1');
  const discover = `oras discover --plain-http --format json "$IMAGE"`;
  const found = new RegExp(`"digest": "${JSON.parse(pushed).referrer}"`);
  return [
    accepting('cosign', `an image, registry ${what}`, good, [/^Verification for /m]),
    refusing('cosign', `an image without a bundle, registry ${what}`, await verify(other)),
    refusing('cosign', `an image, the key of test, registry ${what}`, await verify(digest, asTest)),
    refusing('cosign', `an image, another type, registry ${what}`, await verify(digest, asOther)),
    accepting('cosign', `a public test result, registry ${what}`, await verify(tested[0] ?? '', asResult), [
      /^Verification for /m,
    ]),
    accepting(
      'cosign',
      `the same, another image, registry ${what}`,
      await verify(tested[1] ?? '', asResult),
      [/^Verification for /m],
    ),
    accepting('oras', `discovers the bundle, registry ${what}`, await verify(digest, discover), [found]),
  ];
}

/** Starts go-containerregistry's, which has the API, in memory. Returns its host and port. */
export async function startGoRegistry({ teardown }: Teardown): Promise<string> {
  const child = spawn(tool('serve-registry'), { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  teardown(() => {
    child.stdin.end();
    return ended;
  });
  const [host] = await once(createInterface(child.stdout), 'line');
  return host;
}
