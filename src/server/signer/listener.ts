/** The Unix domain socket of the signing protocol. */
import { once } from 'node:events';
import { chmod, lstat, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { hasErrno } from '../core/files/errno.js';
import type { Logger } from '../core/logger.js';
import { encodeFrame, frameReader, type Texts } from '../keys/socket/socket-frames.js';

type ListenerDeps = {
  /** Never rejects. */
  answer: (request: Texts) => Promise<Texts>;
  log: Pick<Logger, 'warn'>;
};

type SignerListener = {
  /** Rejects if another process listens there. */
  listen(address: { socketPath: string; socketMode: number }): Promise<void>;
  /** Answers what was asked, then ends connections. */
  close(): Promise<void>;
};

/** Requests of a connection without an answer: beyond that nothing more is read of it. */
const MAX_UNANSWERED = 1_000;
const MAX_CONNECTIONS = 1_024;
const CLOSE_MS = 3_000;
/** Nobody but the owner connects before the permissions are set. */
const OWNER_ONLY = 0o177;

/** Creates a listener, which does not listen yet. */
export function createSignerListener({ answer, log }: ListenerDeps): SignerListener {
  const open = new Set<Connection>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    const connection = serve(socket, answer, (reason) => log.warn({ reason }, 'a client was disconnected'));
    open.add(connection);
    socket.on('close', () => open.delete(connection));
  });
  server.maxConnections = MAX_CONNECTIONS;
  return {
    listen: async ({ socketPath, socketMode }) => {
      await removeStale(socketPath);
      const umask = process.umask(OWNER_ONLY);
      server.listen(socketPath);
      process.umask(umask);
      await once(server, 'listening');
      await chmod(socketPath, socketMode);
    },
    close: () => closeAll(server, open),
  };
}

type Connection = { socket: Socket; finish: () => Promise<void> };

/** Answers in the order of the requests. A client that reads no answers is not read either. */
function serve(
  socket: Socket,
  answer: ListenerDeps['answer'],
  onMalformed: (reason: string) => void,
): Connection {
  const read = frameReader();
  let unanswered = 0;
  let last: Promise<void> = Promise.resolve();
  const adjust = () => {
    if (unanswered >= MAX_UNANSWERED || socket.writableNeedDrain) socket.pause();
    else if (socket.isPaused()) socket.resume();
  };
  const take = (request: Texts) => {
    unanswered++;
    const made = answer(request);
    last = last.then(async () => {
      const frame = encodeFrame(await made);
      unanswered--;
      if (socket.writable) socket.write(frame);
      adjust();
    });
  };
  socket.on('data', (chunk) => {
    try {
      for (const request of read(chunk)) take(request);
      adjust();
    } catch (error) {
      onMalformed((error as Error).message);
      socket.destroy();
    }
  });
  socket.on('drain', adjust);
  socket.on('error', () => {});
  socket.on('end', () => void last.then(() => socket.end()));
  const finish = async () => {
    socket.pause();
    await last;
    socket.end();
  };
  return { socket, finish };
}

async function closeAll(server: Server, open: ReadonlySet<Connection>): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const timer = setTimeout(() => {
    for (const { socket } of open) socket.destroy();
  }, CLOSE_MS);
  await Promise.all([...open].map(({ finish }) => finish()));
  for (const { socket } of open) socket.destroySoon();
  await closed;
  clearTimeout(timer);
}

/** Removes the socket of a process that was killed. */
async function removeStale(path: string): Promise<void> {
  const socket = connect(path);
  try {
    await once(socket, 'connect');
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return;
    // A file that is no socket rejects connections, too.
    if (!hasErrno(error, 'ECONNREFUSED') || !(await lstat(path)).isSocket()) throw error;
    await rm(path);
    return;
  } finally {
    socket.destroy();
  }
  throw new Error(`another process listens at ${path}: stop it, or choose another --socket`);
}
