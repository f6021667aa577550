/** The structure of a TimeStampResp (RFC 3161, section 2.4.2) and of the CMS signed data in it (RFC 5652, section 5). */
import { contextTag, type DerNode, parseDer, TAG } from '../asn1/der.js';
import {
  type DerMembers,
  hasAnyNamedBit,
  membersOf,
  objectIdentifier,
  onlyMember,
  smallInteger,
} from '../asn1/der-read.js';
import { FormatError } from '../bytes/format-error.js';
import { type AlgorithmOid, algorithmOid } from './algorithm.js';
import { TimestampError } from './error.js';
import { parseTstInfo, type TstInfo } from './tst-info.js';

export const TST_INFO_OID = '1.2.840.113549.1.9.16.1.4';

const SIGNED_DATA_OID = '1.2.840.113549.1.7.2';
const MAX_RESPONSE_BYTES = 64 * 1024;

/** The signer identifier: which certificate is the signer's. */
export type SignerId =
  | { readonly issuer: Uint8Array; readonly serialNode: DerNode }
  | { readonly subjectKeyIdentifier: Uint8Array };

/** The token's one SignerInfo. */
export type Signer = {
  readonly sid: SignerId;
  readonly digestOid: AlgorithmOid;
  /** The bytes that are signed: the attributes as a DER SET OF. */
  readonly signedAttributes: DerNode;
  readonly signatureOid: AlgorithmOid;
  readonly signature: Uint8Array;
};

/** A parsed response, granted but not yet verified. */
export type Token = {
  readonly tstInfo: TstInfo;
  /** DER of the TSTInfo, as signed. */
  readonly tstInfoBytes: Uint8Array;
  /** The token's certificates in order, DER each. */
  readonly certificates: readonly Uint8Array[];
  readonly signer: Signer;
};

/** Reads a response of at most 64 KiB. Throws TimestampError for a refusal and for foreign content, FormatError for the rest. */
export function parseResponse(response: Uint8Array): Token {
  if (response.length > MAX_RESPONSE_BYTES) {
    throw new TimestampError(
      'too_large',
      `the response has ${response.length} bytes, at most 65536 are read`,
    );
  }
  const members = membersOf(parseDer(response, MAX_RESPONSE_BYTES), 'TimeStampResp');
  checkStatus(members.take(TAG.sequence));
  const contentInfo = membersOf(members.take(TAG.sequence), 'ContentInfo');
  members.end();
  checkContentType(contentInfo, SIGNED_DATA_OID);
  const signedData = onlyMember(contentInfo.take(contextTag(0, true)), 'content', TAG.sequence);
  contentInfo.end();
  return readSignedData(signedData);
}

function checkStatus(node: DerNode): void {
  const members = membersOf(node, 'PKIStatusInfo');
  const status = smallInteger(members.takeAny(), 'status');
  const text = members.takeIf(TAG.sequence);
  const failure = members.takeIf(TAG.bitString);
  members.end();
  // 1 is grantedWithMods: the stamp would differ from the request.
  if (status !== 0) throw new TimestampError('not_granted', refusal(status, text, failure));
  if (failure !== undefined && hasAnyNamedBit(failure, 'failInfo')) {
    throw new FormatError('failInfo in a granted response');
  }
}

const FAILURES: ReadonlyMap<number, string> = new Map([
  [0, 'badAlg'],
  [2, 'badRequest'],
  [5, 'badDataFormat'],
  [14, 'timeNotAvailable'],
  [15, 'unacceptedPolicy'],
  [16, 'unacceptedExtension'],
  [17, 'addInfoNotAvailable'],
  [25, 'systemFailure'],
]);

/** One line with the reason of a rejection. The authority's text is cut to 200 printable characters. */
function refusal(status: number, text: DerNode | undefined, failure: DerNode | undefined): string {
  const bits = failure?.content.subarray(1) ?? new Uint8Array();
  const isSet = (bit: number) => ((bits[bit >> 3] ?? 0) & (0x80 >> (bit & 7))) !== 0;
  const reasons = [...FAILURES].filter(([bit]) => isSet(bit)).map(([, name]) => name);
  const words = (text?.children ?? []).map(({ content }) => new TextDecoder().decode(content)).join(' ');
  const printable = words.replace(/[^\x20-\x7e]/g, '?').slice(0, 200);
  return [`the authority answered with status ${status}`, ...reasons, printable]
    .filter((part) => part !== '')
    .join(', ');
}

function checkContentType(members: DerMembers, expected: string): void {
  const oid = objectIdentifier(members.takeAny(), 'contentType');
  if (oid !== expected)
    throw new TimestampError('content_type', `content type ${oid} where ${expected} belongs`);
}

function readSignedData(node: DerNode): Token {
  const members = membersOf(node, 'SignedData');
  expectVersion(members, 3, 'SignedData');
  const digestOids = members
    .take(TAG.set)
    .children.map((algorithm) => algorithmOid(algorithm, 'digestAlgorithm'));
  const content = membersOf(members.take(TAG.sequence), 'EncapsulatedContentInfo');
  checkContentType(content, TST_INFO_OID);
  const tstInfoBytes = onlyMember(content.take(contextTag(0, true)), 'eContent', TAG.octetString).content;
  content.end();
  // Revocation lists would come next as [1]; a token is not checked against them, so none is accepted.
  const certificates = members.takeIf(contextTag(0, true))?.children ?? [];
  const signerInfos = members.take(TAG.set).children;
  members.end();
  const [signerInfo] = signerInfos;
  if (signerInfo === undefined || signerInfos.length !== 1) {
    throw new TimestampError('signer_count', `the token has ${signerInfos.length} signers where one belongs`);
  }
  const signer = readSignerInfo(signerInfo);
  if (!digestOids.includes(signer.digestOid))
    throw new FormatError("the signer's digest algorithm is not announced");
  return {
    tstInfo: parseTstInfo(tstInfoBytes),
    tstInfoBytes,
    certificates: certificates.map(certificateBytes),
    signer,
  };
}

function certificateBytes(node: DerNode): Uint8Array {
  if (node.tag !== TAG.sequence) throw new FormatError('a certificate of the token is not an X.509 one');
  return node.raw;
}

function readSignerInfo(node: DerNode): Signer {
  const members = membersOf(node, 'SignerInfo');
  const version = smallInteger(members.takeAny(), 'SignerInfo version');
  const sid = readSignerId(members.takeAny());
  if (version !== ('issuer' in sid ? 1 : 3)) throw new FormatError(`SignerInfo of version ${version}`);
  const digestOid = algorithmOid(members.takeAny(), 'digestAlgorithm');
  const attributes = members.takeIf(contextTag(0, true));
  if (attributes === undefined)
    throw new TimestampError('signed_attributes', 'the token has no signed attributes');
  const signatureOid = algorithmOid(members.takeAny(), 'signatureAlgorithm');
  const signature = members.take(TAG.octetString).content;
  members.takeIf(contextTag(1, true));
  members.end();
  return { sid, digestOid, signedAttributes: asSet(attributes), signatureOid, signature };
}

function readSignerId(node: DerNode): SignerId {
  if (node.tag === contextTag(0, false)) return { subjectKeyIdentifier: node.content };
  const members = membersOf(node, 'SignerIdentifier');
  const issuer = members.take(TAG.sequence).raw;
  const serialNode = members.take(TAG.integer);
  members.end();
  return { issuer, serialNode };
}

/** The signed bytes have the tag of a SET OF in place of [0] (RFC 5652, section 5.4). */
function asSet(node: DerNode): DerNode {
  const raw = Uint8Array.from(node.raw);
  raw[0] = TAG.set;
  return { ...node, tag: TAG.set, raw };
}

function expectVersion(members: DerMembers, expected: number, name: string): void {
  const version = smallInteger(members.takeAny(), `${name} version`);
  if (version !== expected) throw new FormatError(`${name} of version ${version} where ${expected} belongs`);
}
