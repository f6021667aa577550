import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { AttestationService } from '../../../../gen/attestation/v1/attestations_pb.js';
import { utf8 } from '../../../../src/proof/bytes/encoding.js';
import { jcs } from '../../../../src/proof/bytes/jcs.js';
import { createLineVerifier } from '../../../../src/proof/export/verify-line.js';
import { verifyBundle } from '../../../../src/proof/verify/verify.js';
import { runHere } from '../../../support/calling/run-cli.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { linesOf, objectsOf } from '../../../support/exports/exports.js';
import { creation, invalidCreation, METADATA } from '../../rpc/samples.js';
import { setExportScene } from './exporting.js';

const { app, store, make } = await setExportScene(t);
const surfaces = app.surfaces();
const { createAttestation, updateAttestation, getAttestation, listAttestations } = AttestationService.method;

/** Members named as those that every object of JavaScript inherits, at every depth. */
const NAMES =
  '"__proto__":{"a":1},"constructor":{"prototype":{"b":[{"__proto__":null}]}},"toString":"x","hasOwnProperty":1,' +
  '"valueOf":[],"toJSON":"y","length":2,"":{"__proto__":{"__proto__":true},"__defineGetter__":[[]]}';
const VALID = named('"schema":"purl","purl":"pkg:npm/left-pad@1.3.0"');
const INVALID = named('"schema":"purl","purl":"not a purl"');

function named(members: string): JsonObject {
  return JSON.parse(`{${members},${NAMES}}`) as JsonObject;
}

/** Members in the order of their names. As text: a comparison of objects may follow a prototype. */
function textOf(metadata: unknown): string {
  return jcs(metadata);
}

t.test('metadata with members of any name is attested, read, exported and verified unchanged', async (t) => {
  const owner = await newKey(app);
  const { id: exportId } = await make(owner);
  const made: { id: string; metadata: JsonObject }[] = [];
  for (const [i, { name, call }] of surfaces.entries()) {
    const digest = (kind: number) => `${i}${kind}`.repeat(32);
    const run = async (...[method, request]: [Parameters<typeof call>[0], JsonObject]) => {
      const { code, message, response } = await call(method, request as never, owner.key);
      if (code !== 'ok') throw new Error(`${name}: ${code} ${message}`);
      return response;
    };
    const valid = await run(createAttestation, creation(digest(0), VALID));
    t.equal(textOf(valid.metadata), textOf(VALID), `${name}: created`);
    const invalid = await run(createAttestation, invalidCreation(digest(1), INVALID));
    const correctable = await run(createAttestation, invalidCreation(digest(2), INVALID));
    const corrected = await run(updateAttestation, { id: String(correctable.id), metadata: VALID });
    t.equal(textOf(corrected.metadata), textOf(VALID), `${name}: corrected`);
    t.equal(textOf(corrected.attestedMetadata), textOf(INVALID), `${name}: attested before`);
    for (const { id } of [valid, invalid, corrected]) {
      made.push({ id: String(id), metadata: id === invalid.id ? INVALID : VALID });
    }
  }
  await app.drain();
  for (const { name, call } of surfaces) {
    const { response } = await call(listAttestations, { limit: 200 }, owner.key);
    const listed = new Map((response.data as JsonObject[]).map((one) => [one.id, one]));
    for (const { id, metadata } of made) {
      const read = await call(getAttestation, { id }, owner.key);
      t.equal(textOf(read.response.metadata), textOf(metadata), `${name}: read`);
      t.equal(textOf(listed.get(id)?.metadata), textOf(metadata), `${name}: listed`);
    }
  }
  const trustRoots = (await app.rest('/verify/trust_roots.json')).json;
  const verifyLine = createLineVerifier({ trustRoots, project: owner.projectId, now: new Date() });
  const lines = await linesOf(store, exportId);
  t.equal(lines.length, made.length);
  for (const { submission, bundle } of lines) {
    const found = await verifyLine(utf8(JSON.stringify({ submission, bundle })));
    t.match(found, { verdict: 'verified', reason: '' }, 'a line');
    const verified = await verifyBundle(bundle, {
      trustRoots,
      now: new Date(),
      artifactSha256: String((submission.artifact as JsonObject).sha256),
      metadata: submission.attested_metadata ?? submission.metadata,
      metadataSalt: String(submission.metadata_salt),
    });
    t.match(verified, { verdict: 'verified' }, 'a bundle with its metadata');
  }
});

t.test('attest submits metadata with members of any name, and verifies it and its export', async (t) => {
  const owner = await newKey(app);
  const { id: exportId } = await make(owner);
  const dir = t.testdir({ 'report.json': '{}', 'metadata.json': JSON.stringify(VALID) });
  const inDir = (name: string) => join(dir, name);
  const env = { ATTEST_URL: app.baseUrl, ATTEST_API_KEY: owner.key };
  const metadata = `@${inDir('metadata.json')}`;
  const submitted = await runHere(['submit', inDir('report.json'), '--metadata', metadata, '--json'], {
    env,
  });
  t.equal(submitted.code, 0, submitted.stderr);
  await app.drain();
  const { id } = JSON.parse(submitted.stdout).submission as { id: string };
  const { json } = await app.rest(`/v1/attestations/${id}`, { apiKey: owner.key });
  t.equal(textOf(json.metadata), textOf(VALID));
  await writeFile(inDir('bundle.json'), JSON.stringify(json.bundle));
  const { body } = await app.rest('/verify/trust_roots.json');
  await writeFile(inDir('roots.json'), body);
  const roots = ['--trust-roots', inDir('roots.json')];
  const bundle = ['--bundle', inDir('bundle.json')];
  const salt = ['--metadata', metadata, '--metadata-salt', String(json.metadata_salt)];
  const verified = await runHere(['verify', inDir('report.json'), ...bundle, ...salt, ...roots], { env });
  t.equal(verified.code, 0, verified.stdout);
  for (const [name, bytes] of await objectsOf(store, exportId)) {
    await mkdir(dirname(inDir(name)), { recursive: true });
    await writeFile(inDir(name), bytes);
  }
  const exported = await runHere(['verify', '--export', inDir('copies'), ...roots, '--json'], { env });
  t.equal(exported.code, 0, exported.stdout);
});

t.test('metadata whose schema is only inherited, or is named as what is inherited, has none', async (t) => {
  const owner = await newKey(app);
  const metadata = JSON.parse('{"__proto__":{"schema":"purl","purl":"pkg:npm/a"}}') as JsonObject;
  for (const { name, call } of surfaces) {
    const without = await call(createAttestation, creation('ab'.repeat(32), metadata), owner.key);
    t.equal(without.code, 'request.invalid', name);
    for (const schema of ['__proto__', 'constructor', 'toString']) {
      const unknown = await call(
        createAttestation,
        creation('ab'.repeat(32), { ...METADATA, schema }),
        owner.key,
      );
      t.equal(unknown.code, 'submission.unknown_schema', name);
    }
  }
});
