/** A process that signs over a Unix domain socket, as one in front of an HSM would: docs/signing-process.md. */
import { createPublicKey, type KeyObject, sign } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';

type Texts = Record<string, string>;

/** What it does with a request; the usual answer may be taken, changed or thrown away. */
type Manner = (request: Texts, answer: Texts) => Texts | Buffer | undefined;

export type SigningProcess = {
  /** The setting of a key: `socket:<path>#<id>`. */
  setting(id: string): string;
  path: string;
  /** `undefined` is no answer; bytes are sent as they are. */
  manner: Manner;
  /** How many requests have come. */
  asked: number;
  /** Stops listening and closes connections. */
  stop(): Promise<void>;
  start(): Promise<void>;
};

/** Serves keys by id until the test ends. */
export async function startSigningProcess(
  test: Pick<Test, 'teardown'>,
  keys: Record<string, KeyObject>,
): Promise<SigningProcess> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-signer-'));
  const path = join(dir, 'signer.sock');
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('close', () => sockets.delete(socket)).on('error', () => {}));
    let held = Buffer.alloc(0);
    socket.on('data', (chunk) => {
      held = Buffer.concat([held, chunk]);
      while (held.length >= 4 && held.length >= 4 + held.readUInt32BE()) {
        const end = 4 + held.readUInt32BE();
        const request: Texts = JSON.parse(held.toString('utf8', 4, end));
        held = held.subarray(end);
        made.asked++;
        const answer = made.manner(request, answerTo(keys, request));
        if (answer !== undefined) socket.write(Buffer.isBuffer(answer) ? answer : frame(answer));
      }
    });
  });
  const made: SigningProcess = {
    setting: (id) => `socket:${path}#${id}`,
    path,
    manner: (_, answer) => answer,
    asked: 0,
    start: () => new Promise((resolve) => server.listen(path, () => resolve())),
    stop: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
  await made.start();
  test.teardown(async () => {
    if (server.listening) await made.stop();
    await rm(dir, { recursive: true, force: true });
  });
  return made;
}

function answerTo(keys: Record<string, KeyObject>, { op, key: id = '', data = '' }: Texts): Texts {
  const key = keys[id];
  if (key === undefined) return { error: `there is no key ${id}` };
  if (op === 'public_key') {
    return { public_key: createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64') };
  }
  const algorithm = key.asymmetricKeyType === 'ed25519' ? null : 'sha256';
  const signature = sign(algorithm, Buffer.from(data, 'base64'), { key, dsaEncoding: 'der' });
  return { signature: signature.toString('base64') };
}

/** A message with its length before it. */
export function frame(message: Texts): Buffer {
  const json = Buffer.from(JSON.stringify(message));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(json.length);
  return Buffer.concat([length, json]);
}
