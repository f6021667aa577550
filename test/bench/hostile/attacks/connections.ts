// Connections of strangers that do nothing, too little or too much.
import type { Attack, Target } from '../attack.js';
import { dropAnswers, openSockets, writeToAll } from '../attack-sockets.js';

const MANY = 10_000;
const REQUEST = 'GET /v1/service/health HTTP/1.1\r\nhost: a\r\n\r\n';

export const attacks: Attack[] = [
  { name: '10: 10,000 connections that say nothing', run: (target) => hold(target, '') },
  { name: '10: 10,000 connections with half a request', run: (target) => hold(target, REQUEST.slice(0, -2)) },
  { name: '10: 10,000 connections with one request each', run: (target) => hold(target, REQUEST) },
  { name: '11: 60,000 requests on one connection, not read', run: (target) => pipeline(target, 1, 60_000) },
  {
    name: '11: 60,000 requests on one connection, read',
    run: (target) => pipeline(target, 1, 60_000, dropAnswers),
  },
  {
    name: '11: 1,000 requests on each of 1,000 connections, not read',
    run: (target) => pipeline(target, 1_000, 1_000),
  },
];

async function hold(target: Target, text: string): Promise<number> {
  const sockets = await openSockets(target, MANY);
  const bytes = await writeToAll(sockets, Buffer.from(text));
  // Opening a connection takes three packets of 60 bytes at the least.
  return bytes + MANY * 180;
}

async function pipeline(
  target: Target,
  connections: number,
  requests: number,
  read: typeof dropAnswers = () => {},
): Promise<number> {
  const sockets = await openSockets(target, connections);
  read(sockets);
  return writeToAll(sockets, Buffer.from(REQUEST.repeat(requests)));
}
