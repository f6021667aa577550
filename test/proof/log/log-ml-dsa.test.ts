import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import t from 'tap';
import type { ProofBundle } from '../../../gen/attestation/v1/bundle_pb.js';
import { ProofBundleSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { openCheckpoint } from '../../../src/proof/log/checkpoint.js';
import { checkLogSignature } from '../../../src/proof/log/log-signature.js';
import { encodeVerifierKey, ML_DSA_44_NOTE_KEY, noteKey, parseNote } from '../../../src/proof/log/note.js';
import { verifyBundle } from '../../../src/proof/verify/verify.js';
import { mlDsaKeyPem, parseMlDsaKey } from '../../../src/server/keys/ml-dsa-key.js';
import { ARTIFACT, makeService, NOW } from '../sample.js';
import { makeSample } from '../sample-bundles.js';
import { makeTrustRoots } from '../sample-trust-roots.js';

const dir = t.testdir();
const plain = await makeService(join(dir, 'service'));
const service = { ...plain, log: { ...plain.log, mlDsa: parseMlDsaKey(mlDsaKeyPem(randomBytes(32))) } };
const { bundle } = await makeSample(service, ['log', 'tsa']);
const trustRoots = makeTrustRoots(service);
const key = noteKey(service.origin, service.log.mlDsa.publicKey, ML_DSA_44_NOTE_KEY);

/** The codes of step 6 with their statuses. */
async function check(given: ProofBundle, roots: unknown = trustRoots) {
  const { verdict, steps } = await verifyBundle(given, { artifact: ARTIFACT, trustRoots: roots, now: NOW });
  return { verdict, codes: steps[5]!.checks.map(({ code, status }) => `${code} ${status}`) };
}

/** The bundle with a change to the notes of all its checkpoints, and without the log's copy. */
function withNote(change: (note: string) => string): ProofBundle {
  return create(ProofBundleSchema, {
    ...bundle,
    sigstoreBundle: JSON.parse(JSON.stringify(bundle.sigstoreBundle), (member, value) =>
      member === 'envelope' ? change(String(value)) : value,
    ),
    checkpoints: bundle.checkpoints.map((one) => ({ ...one, note: change(one.note) })),
    witnesses: bundle.witnesses.filter(({ name }) => name !== 'log'),
  });
}

t.test('both signatures of the log are verified, and reported', async (t) => {
  t.strictSame(await check(bundle), {
    verdict: 'verified',
    codes: ['checkpoint.signed passed', 'checkpoint.signed_ml_dsa passed'],
  });
  const note = parseNote(bundle.checkpoints[0]!.note);
  t.equal(note.signatures.length, 2);
  t.equal(await checkLogSignature(note, key), 'valid');
  const [log] = trustRoots.transparencyLogs;
  t.ok(await openCheckpoint(bundle.checkpoints[0]!.note, noteKey(service.origin, service.log.publicKey)));
  t.equal(log?.mlDsaVerifierKey, encodeVerifierKey(key));
});

t.test('verifiers without the second key ignore it', async (t) => {
  t.strictSame(await check(bundle, makeTrustRoots(plain)), {
    verdict: 'verified',
    codes: ['checkpoint.signed passed', 'checkpoint.unknown_signature not_checked'],
  });
});

t.test('a checkpoint without it is valid, and its absence is reported', async (t) => {
  const without = withNote((note) => `${note.split('\n').slice(0, -2).join('\n')}\n`);
  t.strictSame(await check(without), {
    verdict: 'verified',
    codes: ['checkpoint.signed passed', 'checkpoint.no_ml_dsa not_checked'],
  });
});

t.test('a wrong one fails', async (t) => {
  const changes: ((line: string) => string)[] = [
    (line) => line.slice(0, -8) + (line.at(-8) === 'A' ? 'B' : 'A') + line.slice(-7),
    (line) => `${line}\n${line}`,
    (line) => line.replace(/.{100}$/, ''),
  ];
  for (const change of changes) {
    const changed = withNote((note) => {
      const lines = note.split('\n');
      return [...lines.slice(0, -2), change(lines.at(-2) ?? ''), ''].join('\n');
    });
    const { verdict, codes } = await check(changed);
    t.equal(verdict, 'not_verified');
    t.strictSame(codes, ['checkpoint.signed passed', 'checkpoint.bad_ml_dsa failed']);
  }
});

t.test('trust roots with a key of another log or type are rejected', async (t) => {
  const [log] = trustRoots.transparencyLogs;
  const keys = [
    encodeVerifierKey(noteKey('other.example', service.log.mlDsa.publicKey, ML_DSA_44_NOTE_KEY)),
    encodeVerifierKey(noteKey(service.origin, service.log.publicKey)),
    'garbage',
  ];
  for (const mlDsaVerifierKey of keys) {
    const roots = { ...trustRoots, transparencyLogs: [{ ...log!, mlDsaVerifierKey }] };
    t.equal((await check(bundle, roots)).verdict, 'could_not_check');
  }
});
