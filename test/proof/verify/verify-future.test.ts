import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import { ProofBundleSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { restJson } from '../rest-json.js';
import type { Service } from '../sample.js';
import { makeSample } from '../sample-bundles.js';
import { type Bundle, changed, failures, good, other, service, verify } from '../verifying.js';
import { futureBundles } from './future.js';

t.test('a bundle of tomorrow is verified without what is not known, or could not be checked', async (t) => {
  for (const { what, verdict, says, bundle } of await futureBundles()) {
    const found = await verify(bundle);
    t.equal(found.verdict, verdict, `${what}: ${found.summary}`);
    t.match(found.steps.flatMap(({ checks }) => checks.map(({ message }) => message)).join('\n'), says, what);
  }
});

t.test('nothing is claimed from a member that is not known', async (t) => {
  const found = await verify(
    changed((b) => {
      Object.assign(b.batch, { 'a~/\u001b': 1 });
      Object.assign(b.witnesses[1]!.detail, { clock: 'gps' });
    }),
  );
  t.equal(found.verdict, 'verified');
  t.strictSame(found.unproven.slice(-2), ['/batch/a~0~1?', '/witnesses/1/detail/clock']);
});

t.test('a time stamp of the signature dates it when nothing else is earlier', async (t) => {
  const [stamped] = (await futureBundles()).filter(({ what }) => what === 'a time stamp of the signature');
  const bundle = structuredClone(stamped!.bundle) as unknown as Bundle;
  bundle.witnesses = bundle.witnesses.filter(({ name }) => name === 'log');
  const found = await verify(bundle, { policy: { required: ['log'] } });
  t.match(found, {
    verdict: 'verified',
    summary: /according to tsa’s time stamp of the signature \(the operator’s/,
  });
  t.equal((await verify(bundle)).verdict, 'not_verified', 'it is no witness of a policy');
});

t.test('a member that is needed is not replaced by one that is not known', async (t) => {
  for (const path of pathsOf(good)) {
    const renamed = structuredClone(good);
    const name = path.at(-1)!;
    const inside = path.slice(0, -1).reduce((at, step) => at[step] as JsonObject, renamed);
    Object.assign(inside, { [`x_${name}`]: inside[name] });
    delete inside[name];
    const isNeedless =
      path.includes('detail') || name === 'keyid' || path.join('/') === 'witnesses/0/evidence';
    t.equal((await verify(renamed)).verdict, isNeedless ? 'verified' : 'not_verified', path.join('/'));
  }
});

t.test('what only claims to be signed or logged in a form of tomorrow is not verified', async (t) => {
  const bundleOf = async (change: Partial<Service>) =>
    restJson(
      ProofBundleSchema,
      (await makeSample({ ...service, ...change }, ['log', 'tsa'])).bundle,
    ) as unknown as Bundle;
  const form = { payload: (text: string) => text.replace('"predicate":{', '"predicate":{"annotations":{},') };
  const stranger = other.service;
  const cases: [what: string, code: string, bundle: unknown][] = [
    [
      'a statement that nobody signed',
      'signature.invalid',
      changed((b) => {
        const text = Buffer.from(b.sigstore_bundle.dsseEnvelope.payload, 'base64').toString();
        const payload = Buffer.from(form.payload(text)).toString('base64');
        Object.assign(b.sigstore_bundle.dsseEnvelope, { payload });
      }),
    ],
    [
      'a signed statement that no log holds',
      'leaf.body_mismatch',
      changed((b) => {
        Object.assign(b.sigstore_bundle, { dsseEnvelope: signedForm.sigstore_bundle.dsseEnvelope });
      }),
    ],
    [
      'an entry that the log does not hold',
      'inclusion.invalid',
      changed((b) => {
        const body = Buffer.from('{"apiVersion":"0.0.3","kind":"dsse"}').toString('base64');
        const [entry] = b.sigstore_bundle.verificationMaterial.tlogEntries;
        Object.assign(entry!, { canonicalizedBody: body, kindVersion: { kind: 'dsse', version: '0.0.3' } });
      }),
    ],
    ['lines that no log signed', 'checkpoint.bad_signature', withLines()],
    [
      "a stranger's key and log",
      'signature.untrusted_key',
      await bundleOf({ ...stranger, origin: 'live.far.example' }),
    ],
    ["a stranger's log under a known name", 'checkpoint.unknown_log', await bundleOf({ log: stranger.log })],
  ];
  for (const [what, code, bundle] of cases) {
    const found = await verify(bundle);
    t.equal(found.verdict, 'not_verified', what);
    t.ok(failures(found).includes(code), `${what}: ${code} in ${failures(found)}`);
  }
});

const signedForm = restJson(
  ProofBundleSchema,
  (
    await makeSample({
      ...service,
      form: { payload: (text) => text.replace('"predicate":{', '"predicate":{"annotations":{},') },
    })
  ).bundle,
) as unknown as Bundle;

function withLines(): JsonObject {
  return changed((b) => {
    const [checkpoint] = b.checkpoints;
    const [body, lines] = checkpoint!.note.split('\n\n') as [string, string];
    const note = `${body}\nmore\n\n${lines}`;
    Object.assign(checkpoint!, { note });
    const [entry] = b.sigstore_bundle.verificationMaterial.tlogEntries;
    Object.assign(entry!.inclusionProof.checkpoint, { envelope: note });
  });
}

/** The place of each member of each object. */
function pathsOf(value: unknown, at: readonly string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inside]) => [
    ...(Array.isArray(value) ? [] : [[...at, name]]),
    ...pathsOf(inside, [...at, name]),
  ]);
}
