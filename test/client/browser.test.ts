/** The client library as a browser gets it: bundled, and run where there are web APIs alone. */
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { build, type Metafile } from 'esbuild';
import t from 'tap';
import { stageClient } from '../../src/generate/packages/stage-client.js';
import * as nodePrimitives from '../../src/proof/bytes/primitives.js';
import * as webPrimitives from '../../src/proof/bytes/primitives-web.js';
import { formatSecret, signatureHeaders } from '../../src/server/webhooks/delivery/sign.js';
import { ARTIFACT, NOW } from '../proof/sample.js';
import { good, trustRoots } from '../proof/verifying.js';

const PACKAGE = '@attestation-service/client';
const dir = t.testdir();
stageClient({ root: process.cwd(), out: join(dir, 'node_modules', PACKAGE) });

/** What only Node has, taken away before the bundle runs. */
const HIDE_NODE = `
  const { parentPort, workerData } = require('node:worker_threads');
  // Node makes these of Node's own parts, the first time that they are asked for.
  void [Headers, fetch];
  for (const name of ['process', 'Buffer', 'require', 'module', 'exports']) {
    delete globalThis[name];
  }
  (0, eval)(workerData.code);
  (0, eval)('(' + workerData.use + ')')(attestation, workerData.input).then((value) => parentPort.postMessage(value));`;

async function bundle(): Promise<{ code: string; metafile: Metafile }> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: `export * from '${PACKAGE}';`, resolveDir: dir },
    absWorkingDir: dir,
    bundle: true,
    platform: 'browser',
    format: 'iife',
    globalName: 'attestation',
    write: false,
    metafile: true,
    logLevel: 'silent',
  });
  return { code: `${outputFiles[0]!.text}; globalThis.attestation = attestation;`, metafile };
}

type Library = typeof import('../../src/client/client.js');

const bundled = bundle();

/** What `use` returns in a thread that has the bundle, and nothing of Node. `use` must stand on its own. */
async function inBrowser<I, O>(use: (library: Library, input: I) => Promise<O>, input: I): Promise<O> {
  const { code } = await bundled;
  const worker = new Worker(HIDE_NODE, { eval: true, workerData: { code, use: use.toString(), input } });
  try {
    return await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
  } finally {
    await worker.terminate();
  }
}

t.test('a browser bundle contains no module of Node', async (t) => {
  const { metafile } = await bundled;
  const imports = Object.values(metafile.inputs).flatMap(({ imports }) => imports);
  t.ok(imports.length > 100);
  t.same(
    imports.filter(({ external, path }) => external || path.startsWith('node:')),
    [],
  );
  const files = Object.keys(metafile.inputs);
  const own = files.filter((path) => path.startsWith(`node_modules/${PACKAGE}/src/`));
  t.ok(own.includes(`node_modules/${PACKAGE}/src/proof/bytes/primitives-web.js`));
  t.notOk(own.includes(`node_modules/${PACKAGE}/src/proof/bytes/primitives-node.js`));
  t.same(
    own.filter((path) => !/\/client\/src\/(client|proof|protocol)\//.test(path)),
    [],
    'and nothing of the server',
  );
});

t.test('a browser verifies bundles as Node does', async (t) => {
  const input = { good, trustRoots, artifact: ARTIFACT, now: NOW };
  const { verified, changed, hidden } = await inBrowser(async ({ verifyBundle }, { good, ...options }) => {
    const isHidden = (name: string) => !(name in globalThis);
    const other = { ...options, artifact: new TextEncoder().encode('another artifact') };
    return {
      verified: await verifyBundle(good, options),
      changed: await verifyBundle(JSON.stringify(good), other),
      hidden: ['process', 'Buffer', 'require'].every(isHidden),
    };
  }, input);
  t.ok(hidden);
  t.equal(verified.verdict, 'verified', verified.summary);
  t.ok(verified.steps.every(({ status }) => status === 'passed'));
  t.equal(changed.verdict, 'not_verified');
});

t.test('a browser verifies webhooks and hashes files of any size in pieces', async (t) => {
  const key = randomBytes(32);
  const data = { submission_id: 'sub_1', bundle_url: 'https://api.example.com' };
  const event = { id: 'evt_1', type: 'attestation.witnessed', created: '2026-01-01T00:00:00Z', data };
  const body = JSON.stringify(event);
  const timestamp = Math.floor(Date.now() / 1000);
  const headers = signatureHeaders([key], { id: event.id, timestamp, body });
  const seen = await inBrowser(
    async ({ verifyWebhook, hashArtifact }, { body, headers, secret }) => {
      const failing = () => {
        try {
          return verifyWebhook(`${body} `, new Headers(headers), secret).id;
        } catch (error) {
          return (error as { code: string }).code;
        }
      };
      const pieces = Array.from({ length: 30 }, () => new Uint8Array(100_000));
      const stream = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          const piece = pieces.pop();
          if (piece) controller.enqueue(piece);
          else controller.close();
        },
      });
      const sha256 = await hashArtifact(stream);
      return [verifyWebhook(body, new Headers(headers), secret).id, failing(), sha256];
    },
    { body, headers, secret: formatSecret(key) },
  );
  const zeros = nodePrimitives.encodeHex(nodePrimitives.sha256(new Uint8Array(3_000_000)));
  t.same(seen, ['evt_1', 'signature.mismatch', zeros]);
});

t.test('the primitives of browsers compute the same as those of Node', async (t) => {
  const web: typeof nodePrimitives = webPrimitives;
  const both = [nodePrimitives, web] as const;
  for (const size of [0, 1, 31, 32, 63, 64, 65, 1_000]) {
    const bytes = new Uint8Array(randomBytes(size));
    const parts = [bytes.subarray(0, size >> 1), bytes.subarray(size >> 1)];
    const [node, browser] = both.map((primitives) => {
      const hash = primitives.createSha256();
      for (const part of parts) hash.update(part);
      return {
        sha256: primitives.sha256(bytes),
        parts: primitives.sha256(...parts),
        pieces: hash.digest(),
        hmac: primitives.hmacSha256(bytes, bytes),
        hmacHex: primitives.hmacSha256Hex(bytes, bytes),
        hex: primitives.encodeHex(bytes),
        base64: primitives.encodeBase64(bytes),
        unhex: primitives.decodeHex(primitives.encodeHex(bytes)),
        unbase64: primitives.decodeBase64(primitives.encodeBase64(bytes)),
      };
    });
    t.same(browser, node, `${size} bytes`);
  }
  for (const text of ['', 'aß€😀', '\ud800x', '\u0000']) {
    t.same(web.encodeUtf8(text), nodePrimitives.encodeUtf8(text));
  }
  for (const text of ['=', 'A', 'AAA', 'AAA=', 'AAB=', ' AAAA', 'AA\nAA', 'AA-_', '*', 'AAAA=']) {
    for (const primitives of both) {
      t.not(primitives.encodeBase64(primitives.decodeBase64(text)), text === 'AAA=' ? '' : text);
    }
  }
});

t.test('a browser verifies the signatures that Node does, and no others', async (t) => {
  const data = new Uint8Array(randomBytes(100));
  const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const ed25519 = generateKeyPairSync('ed25519');
  const spki = ({ publicKey }: typeof p256) =>
    new Uint8Array(publicKey.export({ format: 'der', type: 'spki' }));
  const ecdsa = new Uint8Array(sign('sha256', data, p256.privateKey));
  const edSignature = new Uint8Array(sign(null, data, ed25519.privateKey));
  const raw = spki(ed25519).slice(-32);
  for (const { verifyEcdsaP256Sha256, verifyEd25519, ed25519Spki } of [nodePrimitives, webPrimitives]) {
    t.same(ed25519Spki(raw), spki(ed25519));
    t.equal(await verifyEcdsaP256Sha256(spki(p256), data, ecdsa), true);
    t.equal(await verifyEd25519(raw, data, edSignature), true);
    t.equal(await verifyEd25519(spki(ed25519), data, edSignature), true);
    for (const [key, signed, signature] of [
      [spki(p384), data, ecdsa],
      [spki(ed25519), data, ecdsa],
      [raw, data, ecdsa],
      [new Uint8Array(), data, ecdsa],
      [spki(p256), data.slice(1), ecdsa],
      [spki(p256), data, ecdsa.slice(1)],
      [spki(p256), data, new Uint8Array()],
      [spki(p256), data, new Uint8Array(64)],
    ] as const) {
      t.equal(await verifyEcdsaP256Sha256(key, signed, signature), false);
    }
    for (const [key, signed, signature] of [
      [spki(p256), data, edSignature],
      [raw.slice(1), data, edSignature],
      [raw, data.slice(1), edSignature],
      [raw, data, edSignature.slice(1)],
      [raw, data, new Uint8Array(64)],
    ] as const) {
      t.equal(await verifyEd25519(key, signed, signature), false);
    }
  }
});
