/** Sigstore's TrustedRoot (ProtoJSON): trusted logs and time-stamping authorities. */

import { type PublicKey, parsePublicKey } from '../asn1/public-key.js';
import { TRUSTED_ROOT_MEDIA_TYPE } from '../bundle/trusted-root.js';
import { FormatError } from '../bytes/format-error.js';
import { HASH_BYTES } from '../log/merkle.js';
import { parseJsonText } from '../verify/read/json-text.js';
import {
  bytes,
  findMember,
  getMember,
  items,
  type JsonNode,
  parsed,
  refused,
  text,
  time,
} from './json-node.js';

/** Maximum size of a trusted root. */
export const MAX_TRUSTED_ROOT_BYTES = 4 * 1024 * 1024;

const MEDIA_TYPE = /^application\/vnd\.dev\.sigstore\.trustedroot(\.v0\.\d+)?\+json(;version=0\.\d+)?$/;

/** The period in which a key is trusted, both ends included; no end while the key is in use. */
type TrustedSpan = { readonly from: Date; readonly to?: Date };

/** A log. `id` is its id in entries, `checkpointId` in checkpoints, `name` its name in signature lines. */
export type TrustedLogKey = {
  readonly id: Uint8Array;
  readonly checkpointId: Uint8Array;
  readonly name: string;
  readonly key: PublicKey;
  readonly span: TrustedSpan;
};

/** A time-stamping authority: DER certificates, its own first. */
export type TrustedStamper = {
  readonly name: string;
  readonly chain: readonly Uint8Array[];
  readonly span: TrustedSpan;
};

export type SigstoreTrust = {
  readonly logs: readonly TrustedLogKey[];
  readonly authorities: readonly TrustedStamper[];
};

/** Parses a TrustedRoot given as JSON text or UTF-8 bytes. Throws FormatError. */
export function parseTrustedRoot(input: string | Uint8Array): SigstoreTrust {
  const root: JsonNode = { value: parseJsonText(input, MAX_TRUSTED_ROOT_BYTES), path: '' };
  const mediaType = getMember(root, 'mediaType');
  if (!MEDIA_TYPE.test(text(mediaType))) {
    throw refused(mediaType.path, `must be ${TRUSTED_ROOT_MEDIA_TYPE} or a later version of it`);
  }
  return {
    logs: items(findMember(root, 'tlogs')).map(trustedLog),
    authorities: items(findMember(root, 'timestampAuthorities')).map(authority),
  };
}

/** Whether a time is within the span. */
export function isWithin({ from, to }: TrustedSpan, at: Date): boolean {
  return at >= from && (to === undefined || at <= to);
}

function trustedLog(log: JsonNode): TrustedLogKey {
  const publicKey = getMember(log, 'publicKey');
  const rawBytes = getMember(publicKey, 'rawBytes');
  const id = bytes(getMember(log, 'logId', 'keyId'), HASH_BYTES);
  const checkpointId = findMember(log, 'checkpointKeyId');
  return {
    id,
    checkpointId: checkpointId ? bytes(getMember(checkpointId, 'keyId')) : id,
    name: parsed(getMember(log, 'baseUrl'), nameOfLog),
    key: keyOf(rawBytes),
    span: span(getMember(publicKey, 'validFor')),
  };
}

function keyOf(node: JsonNode): PublicKey {
  const spki = bytes(node);
  return parsed(node, () => parsePublicKey(spki));
}

/** Host and path of the log's URL: its name in signature lines. */
function nameOfLog(baseUrl: string): string {
  if (!URL.canParse(baseUrl)) throw new FormatError('must be a URL');
  const { host, pathname } = new URL(baseUrl);
  return `${host}${pathname.replace(/\/$/, '')}`;
}

function authority(node: JsonNode): TrustedStamper {
  const subject = findMember(node, 'subject');
  const name = subject && (findMember(subject, 'commonName') ?? findMember(subject, 'organization'));
  const certificates = items(getMember(node, 'certChain', 'certificates'));
  return {
    name: name ? text(name) : '',
    chain: certificates.map((certificate) => bytes(getMember(certificate, 'rawBytes'))),
    span: span(getMember(node, 'validFor')),
  };
}

function span(node: JsonNode): TrustedSpan {
  const end = findMember(node, 'end');
  return { from: time(getMember(node, 'start')), ...(end && { to: time(end) }) };
}
