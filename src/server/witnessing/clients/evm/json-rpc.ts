/** A client of Ethereum's JSON-RPC over HTTP. The URL may hold an API key, so errors name its host only. */
import type { JsonRpc } from '../../../../proof/evm/json-rpc.js';
import { boundedRequest, type RequestDeps } from '../bounded-request.js';

/**
 * The node's answer is an error. `code` is JSON-RPC's, 0 if it states none. The message is one short line; `said` is the
 * node's own part of it.
 */
export class JsonRpcError extends Error {
  override readonly name = 'JsonRpcError';

  constructor(
    readonly code: number,
    message: string,
    readonly said = '',
  ) {
    super(message);
  }
}

/** The code of a method that the node does not have (JSON-RPC 2.0, section 5.1). */
export const METHOD_NOT_FOUND = -32_601;

type Node = { url: string; timeoutMs: number; maxBytes: number };

const MAX_MESSAGE_CHARACTERS = 200;
/** A shorter part of the URL is no key, and would take other words out of messages. */
const MIN_SECRET_CHARACTERS = 8;

/**
 * Creates a client. Each call is one request, which `signal` aborts. Calls reject with WitnessRequestError if there is no
 * complete response, and with JsonRpcError if it is an error or no JSON-RPC.
 */
export function jsonRpcClient(deps: RequestDeps, node: Node, signal: AbortSignal): JsonRpc {
  const { host } = new URL(node.url);
  return async (method, params) => {
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
    const headers = { 'content-type': 'application/json', accept: 'application/json' };
    const answer = await boundedRequest(deps, { ...node, method: 'POST', headers, body }, signal);
    const response = parseObject(answer.body);
    if (response?.error !== undefined && response.error !== null)
      throw errorOf(response.error, node.url, method);
    if (answer.status !== 200) {
      throw new JsonRpcError(0, `${host} answered ${method} with status ${answer.status}`);
    }
    if (response?.result === undefined) {
      throw new JsonRpcError(0, `${host} answered ${method} with something that is not JSON-RPC`);
    }
    return response.result;
  };
}

function parseObject(body: Uint8Array): { result?: unknown; error?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(body).toString());
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function errorOf(error: unknown, url: string, method: string): JsonRpcError {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown };
  const text = typeof message === 'string' ? cleanText(message, url) : '';
  const reason = text === '' ? 'an error without a message' : text;
  return new JsonRpcError(
    Number.isSafeInteger(code) ? Number(code) : 0,
    `${new URL(url).host} answered ${method} with: ${reason}`,
    text,
  );
}

/** One line of printable ASCII, without the parts of the URL that may be a key. */
function cleanText(message: string, url: string): string {
  const line = message.slice(0, 4 * MAX_MESSAGE_CHARACTERS).replace(/[^\x20-\x7e]+/g, ' ');
  const cleaned = secretsOf(url).reduce((text, secret) => text.replaceAll(secret, '...'), line);
  return cleaned.trim().slice(0, MAX_MESSAGE_CHARACTERS);
}

/** The whole URL first, then its path and query in parts. */
function secretsOf(url: string): string[] {
  const { href, pathname, search, searchParams } = new URL(url);
  const parts = [...pathname.split('/'), ...searchParams.values()];
  const long = [`${pathname}${search}`, ...parts].filter((part) => part.length >= MIN_SECRET_CHARACTERS);
  return [href, ...long];
}
