/** The account that pays for transactions, and the transactions that it signs. */
import { createECDH, type KeyObject } from 'node:crypto';
import { keccak_256 } from '@noble/hashes/sha3.js';

/** An EIP-1559 transaction without value. Without `to` it creates a contract. Fees are in wei. */
export type UnsignedTransaction = {
  chainId: number;
  nonce: number;
  to?: string;
  data: string;
  gasLimit: bigint;
  maxFeePerGas: bigint;
  maxPriorityFeePerGas: bigint;
};

/** `raw` is the parameter of `eth_sendRawTransaction`. */
type SignedTransaction = { hash: string; raw: string };

/** Signs for one address, 0x and lower-case hex. */
export type EvmAccount = {
  readonly address: string;
  sign(transaction: UnsignedTransaction): Promise<SignedTransaction>;
};

type LoadSigner = () => Promise<typeof import('micro-eth-signer')>;

/**
 * The account of a secp256k1 private key, a secret KeyObject of 32 bytes. `sign` rejects if the optional package that
 * signs is not installed.
 */
export function evmAccount(
  privateKey: KeyObject,
  load: LoadSigner = () => import('micro-eth-signer'),
): EvmAccount {
  return {
    address: addressOf(privateKey),
    sign: async ({ chainId, nonce, to = '0x', ...fields }) => {
      const { Transaction } = await loadSigner(load);
      const transaction = { ...fields, to, type: 'eip1559', value: 0n } as const;
      const whole = { ...transaction, chainId: BigInt(chainId), nonce: BigInt(nonce) };
      // Not strict: its limits would end an account after 131,072 transactions.
      // No extra entropy: signing again gives the same transaction (RFC 6979).
      const signed = Transaction.prepare(whole, false).signBy(privateKey.export(), false);
      return { hash: signed.hash, raw: signed.toHex() };
    },
  };
}

async function loadSigner(load: LoadSigner): ReturnType<LoadSigner> {
  try {
    return await load();
  } catch (error) {
    if (Object(error).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Error('a package for EVM witnesses is missing, run: npm install micro-eth-signer');
  }
}

/** The last 20 bytes of the hash of the public key, without its first byte, which says that it is not compressed. */
function addressOf(privateKey: KeyObject): string {
  const curve = createECDH('secp256k1');
  curve.setPrivateKey(privateKey.export());
  const hash = keccak_256(curve.getPublicKey().subarray(1));
  return `0x${Buffer.from(hash.subarray(-20)).toString('hex')}`;
}
