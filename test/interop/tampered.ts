/** Sigstore bundles that are wrong in one way each. */
import type { SigstoreBundle } from '../../src/proof/bundle/sigstore-bundle.js';

/** What a file is changed into; a bundle's `other` is that of another submission in the same log. */
export type Tampering = [what: string, change: (bundle: SigstoreBundle, other: SigstoreBundle) => void];

/** Changes to a bundle, each of which every verifier must refuse. */
export const TAMPERINGS: readonly Tampering[] = [
  ['the payload of another submission', (b, o) => set(b.dsseEnvelope, { payload: o.dsseEnvelope.payload })],
  [
    'the signature of another submission',
    (b, o) => set(b.dsseEnvelope, { signatures: o.dsseEnvelope.signatures }),
  ],
  ['the envelope of another submission', (b, o) => set(b, { dsseEnvelope: o.dsseEnvelope })],
  ['a changed byte in the signature', (b) => flip(b.dsseEnvelope.signatures[0], 'sig', 40)],
  ['a changed byte in the payload', (b) => flip(b.dsseEnvelope, 'payload', 200)],
  ['another payload type', (b) => set(b.dsseEnvelope, { payloadType: 'application/json' })],
  ['no signature', (b) => set(b.dsseEnvelope, { signatures: [] })],
  ['no entry in a log', (b) => set(b.verificationMaterial, { tlogEntries: [] })],
  ['the entry of another submission', (b, o) => set(b, { verificationMaterial: o.verificationMaterial })],
  ['a changed byte in the leaf record', (b) => flip(entry(b), 'canonicalizedBody', 100)],
  ['another log', (b) => set(entry(b).logId, { keyId: Buffer.alloc(32, 7).toString('base64') })],
  ['another index outside the proof', (b) => set(entry(b), { logIndex: '7' })],
  [
    'another index in the proof',
    (b) => {
      set(entry(b), { logIndex: '7' });
      set(proof(b), { logIndex: '7' });
    },
  ],
  ['a hash too many in the proof', (b) => set(proof(b), { hashes: [...proof(b).hashes, proof(b).rootHash] })],
  ['no checkpoint', (b) => set(proof(b), { checkpoint: { envelope: '' } })],
  [
    'a checkpoint without signatures',
    (b) => set(proof(b).checkpoint, { envelope: `${note(b).split('\n\n')[0]}\n\n` }),
  ],
  [
    'a changed byte in the signature of the checkpoint',
    (b) => set(proof(b).checkpoint, { envelope: changeAt(note(b), note(b).length - 20) }),
  ],
  [
    'another size in the checkpoint',
    (b) => set(proof(b).checkpoint, { envelope: note(b).replace(/\n\d+\n/, '\n99\n') }),
  ],
  [
    'a media type that does not exist',
    (b) => set(b, { mediaType: 'application/vnd.dev.sigstore.bundle.v9+json' }),
  ],
  ['a member that the format does not have', (b) => set(b, { comment: 'x' })],
];

/** Changes after which a bundle has no time stamp over its signature, which verifiers must refuse that want one. */
export const STAMP_TAMPERINGS: readonly Tampering[] = [
  ['no time stamp', ({ verificationMaterial }) => delete verificationMaterial.timestampVerificationData],
  ['the time stamp of another submission', (b, o) => setStamp(b, stampOf(o))],
  ['a changed byte in the time stamp', (b) => setStamp(b, changeAt(stampOf(b), stampOf(b).length - 20))],
];

function stampOf({ verificationMaterial: { timestampVerificationData } }: SigstoreBundle): string {
  const [stamp] = timestampVerificationData?.rfc3161Timestamps ?? [];
  if (stamp === undefined) throw new Error('the bundle has no time stamp');
  return stamp.signedTimestamp;
}

function setStamp({ verificationMaterial }: SigstoreBundle, signedTimestamp: string): void {
  set(verificationMaterial, { timestampVerificationData: { rfc3161Timestamps: [{ signedTimestamp }] } });
}

/** The bundle with a change made to it. */
export function tampered(
  bundle: SigstoreBundle,
  other: SigstoreBundle,
  change: Tampering[1],
): SigstoreBundle {
  const copy = structuredClone(bundle);
  change(copy, other);
  return copy;
}

function set(of: object | undefined, members: object): void {
  Object.assign(of ?? {}, members);
}

function entry({ verificationMaterial: { tlogEntries } }: SigstoreBundle) {
  const [only] = tlogEntries;
  if (only === undefined) throw new Error('the bundle has no entry');
  return only;
}

function proof(bundle: SigstoreBundle) {
  return entry(bundle).inclusionProof;
}

function note(bundle: SigstoreBundle): string {
  return proof(bundle).checkpoint.envelope;
}

function flip<Name extends string>(of: Record<Name, string> | undefined, name: Name, at: number): void {
  if (of !== undefined) set(of, { [name]: changeAt(of[name], at) });
}

function changeAt(text: string, at: number): string {
  return text.slice(0, at) + flipped(text[at] ?? '') + text.slice(at + 1);
}

function flipped(character: string): string {
  return character === 'A' ? 'B' : 'A';
}
