/** A block explorer with the part of Esplora's HTTP API that gives block headers. */
import type { Test } from 'tap';
import { toHex } from '../../../../src/proof/bytes/encoding.js';
import { parseBlockHeader } from '../../../../src/proof/opentimestamps/block-header.js';
import { serve } from '../openssl-tsa.js';
import type { Block } from './calendar.js';

export type Explorer = {
  /** Without a slash at the end. */
  url: string;
  /** Adds a block, or replaces the one at its height. */
  add(block: Block): void;
  /** The answer to every request while it is set. */
  answer: string | undefined;
};

/** Starts an explorer that lives as long as the test. */
export async function startExplorer(test: Test): Promise<Explorer> {
  const pages = new Map<string, string>();
  const server = await serve((request, response) => {
    const page = explorer.answer ?? pages.get(request.url ?? '');
    if (page === undefined) response.writeHead(404).end('Block not found');
    else response.writeHead(200, { 'content-type': 'text/plain' }).end(page);
  });
  test.teardown(server.close);
  const explorer: Explorer = {
    url: server.url.replace(/\/$/, ''),
    add({ height, header }) {
      const { hash } = parseBlockHeader(header);
      pages.set(`/block-height/${height}`, hash);
      pages.set(`/block/${hash}/header`, toHex(header));
    },
    answer: undefined,
  };
  return explorer;
}
