// Frames of HTTP/2 as small as they can be, of a stranger.
import type { Attack, Target } from '../attack.js';
import { openFrames } from '../attack-frames.js';

const REQUESTS = 20_000;
const FRAMES = 200_000;
/** Below what a connection of the service takes at a time. */
const AT_ONCE = 200;

const GRPC = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' };
const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
const CREATE = '/attestation.v1.AttestationService/CreateAttestation';

export const attacks: Attack[] = [
  {
    name: 'HTTP/2: gRPC calls without a key',
    run: (target) => ask(target, { ...GRPC, ':path': CREATE }),
  },
  {
    name: 'HTTP/2: paths that are not there, on HTTP/2',
    run: (target) => ask(target, { ':method': 'GET', ':path': '/v1/x' }),
  },
  {
    name: 'HTTP/2: checks of health',
    run: (target) => ask(target, { ...GRPC, ':path': '/grpc.health.v1.Health/Check' }, message([])),
  },
  {
    name: 'HTTP/2: watches of health, cancelled',
    run: (target) => ask(target, { ...GRPC, ':path': '/grpc.health.v1.Health/Watch' }, message([]), true),
  },
  {
    name: 'HTTP/2: questions to reflection, each on a stream',
    run: (target) => ask(target, { ...GRPC, ':path': REFLECTION }, message([0x3a, 0])),
  },
  {
    name: 'HTTP/2: questions to reflection with long answers',
    run: (target) => ask(target, { ...GRPC, ':path': REFLECTION }, message(symbol('attestation.v1.Batch'))),
  },
  {
    name: 'HTTP/2: 64 questions to reflection on each stream',
    run: (target) => ask(target, { ...GRPC, ':path': REFLECTION }, repeat(message([0x3a, 0]), 64)),
  },
  {
    name: 'HTTP/2: requests that are cancelled at once',
    run: (target) => ask(target, { ':method': 'GET', ':path': '/v1/x' }, undefined, true),
  },
  { name: 'HTTP/2: 200,000 frames of PING', run: (target) => flood(target, 6, Buffer.alloc(8)) },
  { name: 'HTTP/2: 200,000 frames of SETTINGS', run: (target) => flood(target, 4, Buffer.alloc(0)) },
  { name: 'HTTP/2: 200,000 frames of PRIORITY', run: (target) => flood(target, 2, Buffer.alloc(5), 1) },
  { name: 'HTTP/2: 200,000 frames of DATA of one byte', run: sendBytes },
];

/** The same request over and over, on one connection after another as the service closes them. */
async function ask(
  target: Target,
  headers: Record<string, string>,
  body?: Buffer,
  isCancelled = false,
): Promise<number> {
  let bytes = 0;
  for (let left = REQUESTS; left > 0; ) {
    const connection = await openFrames(target);
    while (left > 0 && !connection.isClosed()) {
      const count = Math.min(AT_ONCE, left);
      left -= count;
      await connection.request({ headers, body, count, isCancelled });
    }
    bytes += connection.close();
  }
  return bytes;
}

async function flood(target: Target, type: number, payload: Buffer, streamId = 0): Promise<number> {
  const connection = await openFrames(target);
  await connection.send(type, payload, streamId, FRAMES);
  return connection.close();
}

async function sendBytes(target: Target): Promise<number> {
  const connection = await openFrames(target);
  await connection.begin({ ...GRPC, ':path': REFLECTION });
  await connection.send(0, Buffer.from([0]), 1, FRAMES);
  return connection.close();
}

/** A message of gRPC. */
function message(bytes: readonly number[]): Buffer {
  return Buffer.from([0, 0, 0, 0, bytes.length, ...bytes]);
}

/** A question to reflection for the file of a symbol. */
function symbol(name: string): number[] {
  return [0x22, name.length, ...Buffer.from(name)];
}

function repeat(bytes: Buffer, times: number): Buffer {
  return Buffer.concat(Array.from({ length: times }, () => bytes));
}
