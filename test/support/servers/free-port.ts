import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { hasErrno } from '../../../src/server/core/files/errno.js';

/** Below those that systems give to whoever asks for any (from 32768 on Linux): nobody takes one by chance before it is used. */
const FIRST = 20_000;
const END = 30_000;

const given = new Set<number>();

/** A port that nothing listens on, another one at each call. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, END);
    if (given.has(port)) continue;
    given.add(port);
    const server = createServer().listen(port, '127.0.0.1');
    try {
      await once(server, 'listening');
    } catch (error) {
      if (hasErrno(error, 'EADDRINUSE')) continue;
      throw error;
    }
    server.close();
    await once(server, 'close');
    return port;
  }
}
