/** An OpenTimestamps calendar server that does as the test says, and the blocks that it mines. */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { Test } from 'tap';
import { fromHex, toHex } from '../../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../../src/proof/bytes/primitives.js';
import {
  append,
  applyOperation,
  type Operation,
  prepend,
  SHA256,
} from '../../../../src/proof/opentimestamps/operation.js';
import { makeTimestamp, timestampAfter } from '../../../../src/proof/opentimestamps/timestamp.js';
import { encodeTimestamp } from '../../../../src/proof/opentimestamps/timestamp-codec.js';
import { serve } from '../openssl-tsa.js';
import { mineHeader } from './block.js';

/** A mined block: the header that its height has. */
export type Block = { height: number; header: Uint8Array };

/** An answer in place of the right one; `hang` is none. */
type Misbehaviour = { status: number; body: Uint8Array | string } | 'hang';

export type Calendar = {
  /** Without a slash at the end, as its pending attestations have it. */
  url: string;
  /** Method and path of each request. */
  requests: string[];
  /** The answer to every request while it is set. */
  misbehaves: Misbehaviour | undefined;
  /** The URI that answers name, if it is not the calendar's own. */
  uri: string | undefined;
  /** Puts everything submitted so far into a block. */
  mine(height: number, time?: number): Block;
  close(): Promise<void>;
};

type Attested = { height: number; path: Operation[] };

/** Starts a calendar that lives as long as the test. */
export async function startCalendar(test: Test): Promise<Calendar> {
  const waiting = new Set<string>();
  const attested = new Map<string, Attested>();
  const server = await serve(async (request, response) => {
    const body = await buffer(request);
    calendar.requests.push(`${request.method} ${request.url}`);
    const { misbehaves } = calendar;
    if (misbehaves === 'hang') return;
    if (misbehaves !== undefined) return void response.writeHead(misbehaves.status).end(misbehaves.body);
    if (request.method === 'POST' && request.url === '/digest') return accept(body, response);
    answerTimestamp(request, response);
  });
  test.teardown(server.close);
  const accept = (digest: Uint8Array, response: ServerResponse) => {
    const operations = [prepend(randomBytes(4)), append(randomBytes(8))];
    const uri = calendar.uri ?? calendar.url;
    const timestamp = timestampAfter(digest, operations, (commitment) => {
      waiting.add(toHex(commitment));
      return makeTimestamp(commitment, [{ kind: 'pending', uri }]);
    });
    response.writeHead(200).end(encodeTimestamp(timestamp));
  };
  const answerTimestamp = ({ url = '' }: IncomingMessage, response: ServerResponse) => {
    const commitment = url.replace('/timestamp/', '');
    const found = attested.get(commitment);
    if (found === undefined) {
      const reason = waiting.has(commitment)
        ? 'Pending confirmation in Bitcoin blockchain'
        : 'Commitment not found';
      return response.writeHead(404).end(reason);
    }
    const { height, path } = found;
    const timestamp = timestampAfter(fromHex(commitment), path, (root) =>
      makeTimestamp(root, [{ kind: 'bitcoin', height }]),
    );
    return response.writeHead(200).end(encodeTimestamp(timestamp));
  };
  const calendar: Calendar = {
    url: server.url.replace(/\/$/, ''),
    requests: [],
    misbehaves: undefined,
    uri: undefined,
    mine(height, time = Math.floor(Date.now() / 1_000)) {
      const { root, paths } = commit([...waiting]);
      for (const [commitment, path] of paths) attested.set(commitment, { height, path });
      waiting.clear();
      return { height, header: mineHeader(root, time) };
    },
    close: server.close,
  };
  return calendar;
}

/** A transaction with the root of the commitments in it, and the Merkle root of a block with that transaction. */
function commit(commitments: readonly string[]): { root: Uint8Array; paths: Map<string, Operation[]> } {
  const inTransaction = [prepend(randomBytes(60)), append(randomBytes(40)), SHA256, SHA256];
  const inBlock = [append(randomBytes(32)), SHA256, SHA256, prepend(randomBytes(32)), SHA256, SHA256];
  const { root, paths } = aggregate(commitments);
  const up = [...inTransaction, ...inBlock];
  return {
    root: apply(root, up),
    paths: new Map([...paths].map(([commitment, path]) => [commitment, [...path, ...up]])),
  };
}

/** A chain of hashes over all commitments: each is hashed and appended to what came before. */
function aggregate(commitments: readonly string[]): { root: Uint8Array; paths: Map<string, Operation[]> } {
  let root = sha256(randomBytes(32));
  const paths = new Map<string, Operation[]>();
  for (const commitment of commitments) {
    const leaf = sha256(fromHex(commitment));
    for (const path of paths.values()) path.push(append(leaf), SHA256);
    paths.set(commitment, [SHA256, prepend(root), SHA256]);
    root = sha256(root, leaf);
  }
  return { root, paths };
}

function apply(message: Uint8Array, operations: readonly Operation[]): Uint8Array {
  return operations.reduce((value, operation) => applyOperation(operation, value), message);
}
