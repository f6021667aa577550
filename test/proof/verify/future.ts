/**
 * Bundles as later versions of the service may make them, under today's trust roots: a table for the library, the command
 * line and the verify page.
 */
import { randomBytes } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import { ProofBundleSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { fromBase64, toBase64 } from '../../../src/proof/bytes/encoding.js';
import type { Verdict } from '../../../src/proof/verify/verify.js';
import { requestTimestamp } from '../../../src/server/witnessing/clients/rfc3161.js';
import { restJson } from '../rest-json.js';
import { ed25519, type Service } from '../sample.js';
import { makeSample } from '../sample-bundles.js';
import { type Bundle, changed, good, other, otherGood, service } from '../verifying.js';

/** `says` is in the message of a check. */
export type FutureBundle = { what: string; verdict: Verdict; says: RegExp; bundle: JsonObject };

const material = (b: Bundle) => b.sigstore_bundle.verificationMaterial as unknown as JsonObject;
const envelope = (b: Bundle) => b.sigstore_bundle.dsseEnvelope;
const entry = (b: Bundle) => b.sigstore_bundle.verificationMaterial.tlogEntries[0]!;
const more = { of_tomorrow: { with: ['values'] } };
const [witness, stamp] = [
  { kind: 'roughtime', evidence: 'AAAA' },
  { tree_size: 1000, detail: {} },
];

/** Objects of a bundle that are neither signed nor hashed. */
const OBJECTS: readonly [path: string, at: (b: Bundle) => object][] = [
  ['', (b) => b],
  ['/submission', (b) => b.submission],
  ['/batch', (b) => b.batch],
  ['/checkpoints/1', (b) => b.checkpoints[1]!],
  ['/witnesses/1', (b) => b.witnesses[1]!],
  ['/witnesses/0/detail', (b) => b.witnesses[0]!.detail],
  ['/witnesses/1/detail', (b) => b.witnesses[1]!.detail],
  ['/sigstore_bundle', (b) => b.sigstore_bundle],
  ['/sigstore_bundle/verificationMaterial', material],
  ['/sigstore_bundle/verificationMaterial/publicKey', (b) => material(b).publicKey as object],
  ['/sigstore_bundle/verificationMaterial/tlogEntries/0', entry],
  ['/sigstore_bundle/verificationMaterial/tlogEntries/0/logId', (b) => entry(b).logId],
  ['/sigstore_bundle/verificationMaterial/tlogEntries/0/inclusionProof', (b) => entry(b).inclusionProof],
  ['/sigstore_bundle/dsseEnvelope', envelope],
  ['/sigstore_bundle/dsseEnvelope/signatures/0', (b) => envelope(b).signatures[0]!],
];

/** What can be ignored: the rest proves as much as before. */
function ignorable(): FutureBundle[] {
  const unknown = OBJECTS.map(([path, at]): [string, RegExp, (b: Bundle) => unknown] => [
    `a member more in ${path || 'the bundle'}`,
    new RegExp(`${path}/of_tomorrow is not known to this version and is ignored`),
    (b) => Object.assign(at(b), more),
  ]);
  const landed = { landed_at: '2025-06-07T12:00:00Z' };
  const cases: [what: string, says: RegExp, change: (b: Bundle) => unknown][] = [
    ...unknown,
    [
      'a witness of another kind',
      /rough is a witness of a kind that this version does not know/,
      (b) => b.witnesses.push({ name: 'rough', ...witness, ...stamp, ...landed }),
    ],
    [
      'that witness, as ProtoJSON writes a kind without a name',
      /rough is a witness of a kind/,
      (b) => b.witnesses.push({ name: 'rough', ...witness, kind: 77, ...stamp, ...landed }),
    ],
    [
      'a further time-stamping authority',
      /tsa-b is not in the trust roots/,
      (b) => b.witnesses.push({ ...structuredClone(otherGood.witnesses[1]!), name: 'tsa-b' }),
    ],
  ];
  return cases.map(([what, says, change]) => ({ what, verdict: 'verified', says, bundle: changed(change) }));
}

/** Forms that take another version of the verifier, and a required witness that does. */
function foreign(): FutureBundle[] {
  const cases: [what: string, says: RegExp, change: (b: Bundle) => unknown][] = [
    [
      'the next version',
      /media type .*v2\+json takes another version/,
      (b) => Object.assign(b, { media_type: 'application/vnd.attestation-service.bundle.v2+json' }),
    ],
    [
      'the next version of Sigstore bundles',
      /media type .*v0\.4\+json takes another version/,
      (b) => Object.assign(b.sigstore_bundle, { mediaType: 'application/vnd.dev.sigstore.bundle.v0.4+json' }),
    ],
    [
      'a certificate in place of the key',
      /signed under a certificate/,
      (b) => Object.assign(material(b), { publicKey: undefined, certificate: { rawBytes: 'AAAA' } }),
    ],
    [
      'a message in place of a statement',
      /signs something else than a statement/,
      (b) => Object.assign(b.sigstore_bundle, { dsseEnvelope: undefined, messageSignature: {} }),
    ],
    [
      'a required witness of another kind',
      /the required witness tsa could not be checked/,
      (b) => Object.assign(b.witnesses[1]!, witness),
    ],
  ];
  return cases.map(([what, says, change]) => {
    const bundle = JSON.parse(JSON.stringify(changed(change)));
    return { what, verdict: 'could_not_check', says, bundle };
  });
}

/** What another service of the same log has signed and logged. */
async function bundleOf(change: Partial<Service>, witnesses?: Parameters<typeof makeSample>[1]) {
  const { bundle } = await makeSample({ ...service, ...change }, witnesses);
  return restJson(ProofBundleSchema, bundle);
}

/** What keys of the trust roots have signed, and trusted logs hold, in forms that are not known. */
async function signed(): Promise<FutureBundle[]> {
  const statement = /the signed statement has a form or members that this version does not know/;
  const forms: [what: string, says: RegExp, form: NonNullable<Service['form']>][] = [
    [
      'a statement with a member more',
      statement,
      { payload: (text) => text.replace('"predicate":{', '"predicate":{"annotations":{},') },
    ],
    [
      'a statement of another type',
      statement,
      { payload: (text) => text.replace('submission:v1', 'submission:v2') },
    ],
    ['a payload of another type', statement, { payloadType: 'application/vnd.in-toto+cbor' }],
    [
      'an entry with a member more',
      /the log holds an entry of a form that this version does not know/,
      { record: (text) => text.replace('"data":{', '"context":"","data":{') },
    ],
    [
      'an entry of another kind',
      /the log holds an entry of a form that this version does not know/,
      { record: () => '{"apiVersion":"0.0.3","kind":"dsse","spec":{}}' },
    ],
    ['lines after the root', /the log signed lines that this version does not know/, { lines: 'more\n' }],
  ];
  return Promise.all(
    forms.map(async ([what, says, form]): Promise<FutureBundle> => {
      const bundle = await bundleOf({ form }, ['log', 'tsa']);
      return { what, verdict: 'could_not_check', says, bundle };
    }),
  );
}

/** What newer trust roots would vouch for. */
async function newer(): Promise<FutureBundle[]> {
  const { dsse, authority } = other.service;
  const cosigner = { ...service.cosigner, ...ed25519() };
  const cases: [what: string, verdict: Verdict, says: RegExp, change: Partial<Service>][] = [
    ['a new signing key', 'could_not_check', /its signing key is not in the trust roots/, { dsse }],
    [
      'a new log',
      'could_not_check',
      /the log is not in the trust roots/,
      { origin: 'live-2.log.example', log: ed25519() },
    ],
    ['a new certificate of a required witness', 'could_not_check', /tsa could not be checked/, { authority }],
    ['a new key of another witness', 'verified', /w1: it signed with a key that is not/, { cosigner }],
  ];
  return Promise.all(
    cases.map(async ([what, verdict, says, change]) => ({
      what,
      verdict,
      says,
      bundle: await bundleOf(change),
    })),
  );
}

/** Time stamps over the signature. */
async function stamped(): Promise<FutureBundle[]> {
  const stampBy = async ({ authority }: Service, message: Uint8Array) => {
    const question = { message, nonce: new Uint8Array(randomBytes(8)), chains: [authority.certChain] };
    const { signal } = new AbortController();
    const { evidence } = await requestTimestamp({ send: (r) => authority.respond(r) }, question, signal);
    return toBase64(evidence);
  };
  const [signed] = envelope(good as unknown as Bundle).signatures;
  const signature = fromBase64(signed!.sig);
  const cases: [what: string, verdict: Verdict, says: RegExp, by: Service, message: Uint8Array][] = [
    ['a time stamp of the signature', 'verified', /tsa stamped the signature no later/, service, signature],
    [
      'one by a stranger',
      'verified',
      /signature is by CN=.*not in the trust roots/,
      other.service,
      signature,
    ],
    ['one of something else', 'not_verified', /over another digest/, service, signature.subarray(1)],
  ];
  return Promise.all(
    cases.map(async ([what, verdict, says, by, message]) => {
      const rfc3161Timestamps = [{ signedTimestamp: await stampBy(by, message), ...more }];
      const data = { timestampVerificationData: { rfc3161Timestamps, ...more } };
      return { what, verdict, says, bundle: changed((b) => Object.assign(material(b), data)) };
    }),
  );
}

/** All of them. */
export async function futureBundles(): Promise<FutureBundle[]> {
  const made = await Promise.all([signed(), newer(), stamped()]);
  return [...ignorable(), ...foreign(), ...made.flat()];
}
