import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { Environment } from '../../../../gen/attestation/v1/environment_pb.js';
import { fromHex, toHex } from '../../../../src/proof/bytes/encoding.js';
import { openCheckpoint } from '../../../../src/proof/log/checkpoint.js';
import { verifyInclusion } from '../../../../src/proof/log/merkle.js';
import { parseVerifierKey } from '../../../../src/proof/log/note.js';
import { verifyBundle } from '../../../../src/proof/verify/verify.js';
import { startApp } from '../../../support/app.js';
import { newKey, type TestKey } from '../../../support/calling/test-keys.js';
import { verifyWithOpenssl, verifyWithSigstore } from '../../../support/judging/foreign-verifiers.js';
import { assertNoLeaks } from '../../../support/judging/recorder.js';
import { METADATA } from '../../rpc/samples.js';
import { type Made, submitWitnessed } from '../../rpc/submitting.js';

const app = await startApp(t);
const live = await newKey(app);
const test = await newKey(app, { environment: Environment.TEST });

async function bundleOf({ id }: Made, { key }: TestKey, format = 'bundle'): Promise<string> {
  const { status, body } = await app.rest(`/v1/attestations/${id}/${format}`, { apiKey: key });
  if (status !== 200) throw new Error(`no ${format}: ${body}`);
  return body.toString();
}

/** A public document, as anyone gets it. */
async function published(name: string): Promise<string> {
  const { status, body } = await app.rest(`/verify/${name}`);
  if (status !== 200) throw new Error(`no ${name}`);
  return body.toString();
}

/** What Sigstore's verifier trusts, all of it from the mirror. */
async function sigstoreTrust(name: 'live' | 'test') {
  const roots = JSON.parse(await published('trust_roots.json'));
  const keys: string[] = roots.dsse_signing_keys.map((key: { public_key_pem: string }) => key.public_key_pem);
  const file = name === 'live' ? 'trusted_root.json' : 'trusted_root.test.json';
  return { roots, keys, trustedRoot: JSON.parse(await published(file)) };
}

for (const [name, owner] of [
  ['live', live],
  ['test', test],
] as const) {
  t.test(`a ${name} bundle verifies under the trust roots of the mirror`, async (t) => {
    const made = await submitWitnessed(app, owner);
    const bundle = await bundleOf(made, owner);
    const trustRoots = JSON.parse(await published('trust_roots.json'));
    const options = { trustRoots, environment: name, now: new Date() };
    const verification = await verifyBundle(bundle, {
      ...options,
      artifactSha256: made.artifactSha256,
      metadata: METADATA,
      metadataSalt: made.salt,
    });
    t.equal(verification.verdict, 'verified', verification.summary);
    t.match(verification.statement, { submissionId: made.id, environment: name });
    const other = await verifyBundle(bundle, { ...options, environment: name === 'live' ? 'test' : 'live' });
    t.equal(other.verdict, 'not_verified', 'but not for the other environment');
    const artifact = await verifyBundle(bundle, { ...options, artifactSha256: '0'.repeat(64) });
    t.equal(artifact.verdict, 'not_verified', 'nor for another artifact');
  });

  t.test(`Sigstore, openssl and the tlog-proof agree on a ${name} bundle`, async (t) => {
    const made = await submitWitnessed(app, owner);
    const { roots, keys, trustedRoot } = await sigstoreTrust(name);
    const sigstore = JSON.parse(await bundleOf(made, owner, 'bundle.sigstore.json'));
    t.ok(accepts(sigstore, trustedRoot, keys));
    const other = await sigstoreTrust(name === 'live' ? 'test' : 'live');
    t.notOk(accepts(sigstore, other.trustedRoot, keys), 'not under the other root');

    const { checkpoints, witnesses } = JSON.parse(await bundleOf(made, owner));
    const stamp = witnesses.find(({ kind }: JsonObject) => kind === 'rfc3161');
    const { note } = checkpoints.find(({ tree_size }: JsonObject) => tree_size === stamp.tree_size);
    const body = Buffer.from(note.slice(0, note.indexOf('\n\n') + 1));
    const [authority] = roots.timestamp_authorities;
    const evidence = Buffer.from(stamp.evidence, 'base64');
    t.doesNotThrow(() => verifyWithOpenssl(body, evidence, authority.cert_chain_pem));
    t.throws(() => verifyWithOpenssl(body.subarray(1), evidence, authority.cert_chain_pem));

    const log = roots.transparency_logs.find(({ environment }: JsonObject) => environment === name);
    const [head = '', ...rest] = (await bundleOf(made, owner, 'bundle.tlog-proof')).split('\n\n');
    const [header, index, ...hashes] = head.split('\n');
    t.same([header, index], ['c2sp.org/tlog-proof@v1', `index ${made.logIndex}`]);
    const { size, rootHash } = await openCheckpoint(rest.join('\n\n'), parseVerifierKey(log.verifier_key));
    const leaf = { leafHash: fromHex(made.leafSha256), index: made.logIndex, size, root: rootHash };
    const proof = hashes.map((hash) => Buffer.from(hash, 'base64'));
    t.ok(verifyInclusion(leaf, proof), `in the tree of root ${toHex(rootHash)}`);
  });
}

t.test('Sigstore rejects a bundle after any byte of it was changed', async (t) => {
  const made = await submitWitnessed(app, live);
  const { keys, trustedRoot } = await sigstoreTrust('live');
  const changes = flips(await bundleOf(made, live, 'bundle.sigstore.json'));
  t.ok(changes.length > 1_000);
  t.same(
    changes.filter((changed) => accepts(changed, trustedRoot, keys)),
    [],
  );
});

/** Copies of a Sigstore bundle with one byte of something it holds changed: bytes behind base64, digits elsewhere. */
function flips(text: string): unknown[] {
  const entryOf = (json: ReturnType<typeof JSON.parse>) => json.verificationMaterial.tlogEntries[0];
  type Place = (json: ReturnType<typeof JSON.parse>) => [holder: Record<string, string>, member: string];
  const places: Place[] = [
    (json) => [json.dsseEnvelope, 'payload'],
    (json) => [json.dsseEnvelope.signatures[0], 'sig'],
    (json) => [entryOf(json), 'canonicalizedBody'],
    (json) => [entryOf(json).logId, 'keyId'],
    ...entryOf(JSON.parse(text)).inclusionProof.hashes.map(
      (_: unknown, i: number): Place =>
        (json) => [entryOf(json).inclusionProof.hashes, String(i)],
    ),
  ];
  return places.flatMap((place) => {
    const [holder, member] = place(JSON.parse(text));
    const bytes = Buffer.from(String(holder[member]), 'base64');
    return Array.from(bytes, (_, at) => {
      const json = JSON.parse(text);
      const [changed, name] = place(json);
      const flipped = Buffer.from(bytes);
      flipped[at]! ^= 1;
      changed[name] = flipped.toString('base64');
      return json;
    });
  });
}

function accepts(bundle: unknown, trustedRoot: unknown, keys: string[]): boolean {
  try {
    verifyWithSigstore(bundle, trustedRoot, keys);
    return true;
  } catch {
    return false;
  }
}

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
