import type { Socket } from 'node:net';
import { type NodeResponse, whenClosed } from './requests.js';

/** The end of the headers of a request, of a chunked body, or of an empty line between requests. */
const END = Buffer.from('\n\r\n');

/** Requests of an HTTP/1.1 connection that have no response yet; `proceed` resumes a paused connection. */
type Flow = { unanswered: number; proceed: () => void };

/** What Node sets while it has paused a connection itself, and its parser with it. */
type Pausable = Socket & { _paused?: boolean };

const flows = new WeakMap<Socket, Flow>();

/**
 * Bounds how many requests of a connection of HTTP/1.1 are begun before earlier ones are answered: Node parses all that
 * a read brings, thousands of small ones, and begins each. In place of the whole read Node's parser, the connection's
 * listener for data, gets pieces that begin one request at most; once `max` are unanswered, the
 * connection is paused and the rest is put back.
 */
export function boundPipelining(socket: Pausable, max: number): void {
  const [parse] = socket.listeners('data').slice(-1) as ((chunk: Buffer) => void)[];
  if (parse === undefined) throw new Error('Node has not begun to read the connection');
  const flow: Flow = { unanswered: 0, proceed: () => {} };
  const feed = (chunk: Buffer) => {
    let rest = chunk;
    while (rest.length > 0 && !socket.destroyed) {
      if (socket._paused || flow.unanswered >= max) {
        hold(rest);
        return;
      }
      const cut = nextCut(rest);
      parse.call(socket, rest.subarray(0, cut));
      rest = rest.subarray(cut);
    }
  };
  const hold = (rest: Buffer) => {
    socket.pause();
    socket.unshift(rest);
    flow.proceed = () => {
      flow.proceed = () => {};
      // Not at once: others get their turn between one connection's requests, however many it has sent.
      setImmediate(() => socket._paused || socket.resume());
    };
  };
  flows.set(socket, flow);
  socket.off('data', parse);
  socket.on('data', feed);
}

/**
 * Where the next piece ends. One that has a single end begins one request at most, so a request and its body, or the rest of
 * one and the start of the next, are one piece.
 */
function nextCut(rest: Buffer): number {
  const end = rest.indexOf(END);
  return end < 0 || rest.indexOf(END, end + 1) < 0 ? rest.length : end + END.length;
}

/** Counts a request of a connection until its response has ended. */
export function countUnanswered(socket: Socket, res: NodeResponse): void {
  const flow = flows.get(socket);
  if (flow === undefined) return;
  flow.unanswered++;
  whenClosed(res, () => {
    flow.unanswered--;
    flow.proceed();
  });
}
