import { createECDH, createPrivateKey, createPublicKey, hkdfSync, type KeyObject } from 'node:crypto';

/** The order of P-256 (FIPS 186-5), and how many bytes make a scalar below it without bias. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const WIDE_BYTES = 48;
const SCALAR_BYTES = 32;
const ED25519_SEED_BYTES = 32;

/** A P-256 key that signs receipts; `spki` is its public part in DER. */
type ReceiptKey = { readonly privateKey: KeyObject; readonly spki: Uint8Array };

/**
 * Derives the key of a log's COSE receipts from the log's Ed25519 key, by HKDF with the origin (FIPS 186-5, A.2.1). COSE
 * needs ES256 here, and a receipt is a signature of the log: its key must be no weaker, and no other, than the log's.
 */
export function deriveReceiptKey(logKey: KeyObject, origin: string): ReceiptKey {
  const seed = logKey.export({ type: 'pkcs8', format: 'der' }).subarray(-ED25519_SEED_BYTES);
  const wide = Buffer.from(
    hkdfSync('sha256', seed, '', `attestation-service/v1/receipt ${origin}`, WIDE_BYTES),
  );
  const scalar = (BigInt(`0x${wide.toString('hex')}`) % (ORDER - 1n)) + 1n;
  const d = Buffer.from(scalar.toString(16).padStart(2 * SCALAR_BYTES, '0'), 'hex');
  const ecdh = createECDH('prime256v1');
  ecdh.setPrivateKey(d);
  const point = ecdh.getPublicKey();
  const [x, y] = [point.subarray(1, 1 + SCALAR_BYTES), point.subarray(1 + SCALAR_BYTES)];
  const [base64d, base64x, base64y] = [d, x, y].map((bytes) => bytes.toString('base64url'));
  const jwk = { kty: 'EC', crv: 'P-256', d: base64d!, x: base64x!, y: base64y! };
  const privateKey = createPrivateKey({ key: jwk, format: 'jwk' });
  return { privateKey, spki: createPublicKey(privateKey).export({ type: 'spki', format: 'der' }) };
}
