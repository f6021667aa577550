import { connect } from 'node:net';
import { encodeFrame, frameReader, type Texts } from './socket-frames.js';

/** A connection to a signing process. Answers come in the order of the requests. */
type Connection = {
  /** Rejects, in one line for operators, if no answer comes; then the connection is closed. */
  send(request: Texts): Promise<Texts>;
  isOpen(): boolean;
  close(): void;
};

type Waiting = { resolve: (answer: Texts) => void; reject: (error: Error) => void };

/** An HSM takes milliseconds; a process that takes longer than this counts as away. */
const TIMEOUT_MS = 3_000;
/** The most requests without an answer, so that a slow process does not fill the memory. */
const MAX_WAITING = 1_000;

/** Connects to a Unix domain socket. */
export function openConnection(path: string): Connection {
  const socket = connect(path);
  const read = frameReader();
  const waiting: Waiting[] = [];
  let isOpen = true;
  const end = (reason: string) => {
    isOpen = false;
    clearTimeout(timer);
    socket.destroy();
    for (const { reject } of waiting.splice(0)) reject(new Error(reason));
  };
  let timer: NodeJS.Timeout | undefined;
  const watch = () => {
    clearTimeout(timer);
    if (waiting.length > 0)
      timer = setTimeout(() => end(`it does not answer within ${TIMEOUT_MS} ms`), TIMEOUT_MS);
  };
  const readAnswers = (chunk: Uint8Array) => {
    try {
      return read(chunk);
    } catch (error) {
      throw new Error(`it answers with ${(error as Error).message}`);
    }
  };
  const receive = (chunk: Uint8Array) => {
    for (const answer of readAnswers(chunk)) {
      const first = waiting.shift();
      if (first === undefined) throw new Error('it answers without a question');
      first.resolve(answer);
    }
    watch();
  };
  socket.on('error', ({ message }) => end(message));
  socket.on('close', () => end('it has closed the connection'));
  socket.on('data', (chunk) => {
    try {
      receive(chunk);
    } catch (error) {
      end((error as Error).message);
    }
  });
  return {
    send: (request) =>
      new Promise((resolve, reject) => {
        if (!isOpen) throw new Error('the connection is closed');
        if (waiting.length >= MAX_WAITING) throw new Error(`${MAX_WAITING} requests wait for it`);
        socket.write(encodeFrame(request));
        waiting.push({ resolve, reject });
        if (waiting.length === 1) watch();
      }),
    isOpen: () => isOpen,
    close: () => end('the process is stopping'),
  };
}
