/** What the servers of key management services share: JSON over HTTP on loopback, and keys that sign in this process. */
import { createECDH, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { derEcdsaSignature } from '../../../../src/proof/asn1/der-write.js';

export type KmsRequest = {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: IncomingMessage['headers'];
  body: string;
};
export type KmsAnswer = { status: number; json: unknown };

/** A server; what it does may be changed. */
export type KmsServer = {
  url: string;
  /** How many requests have come. */
  asked: number;
  /** The requests that are open, and the most that were at once. */
  open: number;
  most: number;
  /** Milliseconds before an answer. */
  delayMs: number;
  /** Replaces an answer; `undefined` leaves it, `'cut'` ends the connection. */
  manner: (request: KmsRequest) => KmsAnswer | 'cut' | undefined;
};

/** Serves until the test ends. */
export async function startKmsServer(
  test: { teardown(stop: () => Promise<unknown>): void },
  answer: (request: KmsRequest) => KmsAnswer,
): Promise<KmsServer> {
  const made: KmsServer = { url: '', asked: 0, open: 0, most: 0, delayMs: 0, manner: () => undefined };
  const server = createServer(async (req, res) => {
    const { pathname, searchParams } = new URL(req.url ?? '', 'http://localhost');
    const { method = '', headers } = req;
    const request = { method, path: pathname, query: searchParams, headers, body: await text(req) };
    made.asked++;
    made.open++;
    made.most = Math.max(made.most, made.open);
    setTimeout(() => {
      made.open--;
      const found = made.manner(request) ?? answer(request);
      if (found === 'cut') return void req.socket.destroy();
      res.writeHead(found.status, { 'content-type': 'application/json' }).end(JSON.stringify(found.json));
    }, made.delayMs);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  made.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  test.teardown(async () => {
    server.closeAllConnections();
    server.close();
  });
  return made;
}

/** The order of P-256 (FIPS 186-5). */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/**
 * Signs a digest by ECDSA over P-256 (FIPS 186-5, section 6.4.1): Node signs only what it has hashed, and libraries in
 * JavaScript take milliseconds.
 */
export function signDigest(digest: Uint8Array, key: KeyObject, format: 'der' | 'compact'): Buffer {
  const { d = '' } = key.export({ format: 'jwk' });
  const secret = numberOf(Buffer.from(d, 'base64url'));
  const ephemeral = createECDH('prime256v1');
  const r = numberOf(ephemeral.generateKeys().subarray(1, 33)) % ORDER;
  const k = numberOf(ephemeral.getPrivateKey());
  const s = (powerOf(k, ORDER - 2n) * (numberOf(digest) + r * secret)) % ORDER;
  const signature = Buffer.from([r, s].map((n) => n.toString(16).padStart(64, '0')).join(''), 'hex');
  return format === 'compact' ? signature : Buffer.from(derEcdsaSignature(signature));
}

function numberOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
}

/** `base` to the power of `exponent`, modulo the order. */
function powerOf(base: bigint, exponent: bigint): bigint {
  let [result, square] = [1n, base % ORDER];
  for (let left = exponent; left > 0n; left >>= 1n) {
    if (left & 1n) result = (result * square) % ORDER;
    square = (square * square) % ORDER;
  }
  return result;
}
