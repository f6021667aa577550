/** ML-DSA-44 signatures (FIPS 204), the same in Node and browsers. Loaded when the first one is checked. */

/** Length of a raw public key, in bytes. */
export const ML_DSA_44_KEY_BYTES = 1312;

/** Length of a signature, in bytes. */
export const ML_DSA_44_SIGNATURE_BYTES = 2420;

/** Whether `signature` over `data`, with an empty context, is by this raw public key. Anything malformed is false. */
export async function verifyMlDsa44(
  publicKey: Uint8Array,
  data: Uint8Array,
  signature: Uint8Array,
): Promise<boolean> {
  if (publicKey.length !== ML_DSA_44_KEY_BYTES || signature.length !== ML_DSA_44_SIGNATURE_BYTES)
    return false;
  const { ml_dsa44 } = await import('@noble/post-quantum/ml-dsa.js');
  return ml_dsa44.verify(signature, data, publicKey);
}
