import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Command } from 'commander';
import { request as sendRequest } from 'undici';
import { EventType } from '../../../../gen/attestation/v1/webhooks_pb.js';
import { verifyWebhook } from '../../../client/webhook.js';
import { WebhookVerificationError } from '../../../client/webhook-verification-error.js';
import { printable } from '../../../protocol/printable.js';
import { type Cli, print, printError, UsageError } from '../../cli.js';
import type { ClientFlags } from '../../flags/client-flags.js';
import { openClient } from '../../flags/open-client.js';

type Flags = ClientFlags & { forwardTo?: string; port: string; publicUrl?: string; json?: boolean };

const EVENTS = [EventType.ATTESTATION_WITNESSED, EventType.ATTESTATION_PARTIAL, EventType.ATTESTATION_FAILED];
const MAX_BODY_BYTES = 64 * 1024;
const FORWARD_TIMEOUT_MS = 14_000;
const STOP_SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** `attest webhooks listen`. */
export function addListen(command: Command, cli: Cli): void {
  command
    .description(
      'print events as they arrive, after verifying their signatures, until stopped; uses a temporary subscription. ' +
        'The service must be able to reach this machine: run `attest up` on it, or give --public-url',
    )
    .option('--forward-to <url>', 'forward each event unchanged and return the response status')
    .option('--port <port>', 'local port to listen on, 0 for a free one', '0')
    .option('--public-url <url>', 'public https URL of that port')
    .action((flags: Flags) => listen(cli, flags));
}

async function listen(cli: Cli, flags: Flags): Promise<void> {
  const { webhooks } = openClient(cli, flags);
  const port = parsePort(flags.port);
  if (flags.forwardTo !== undefined && !isHttp(flags.forwardTo))
    throw new UsageError('--forward-to is not an http or https address');
  let secret: string | undefined;
  const server = createServer((request, response) => {
    void receiveDelivery(cli, flags, secret, request, response);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const here = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  try {
    const made = await webhooks.create({ url: flags.publicUrl ?? here, events: EVENTS });
    secret = made.secret;
    printError(cli, `listening at ${here} for ${made.id}; stop with Ctrl-C`);
    if (!flags.json) printError(cli, `secret ${secret}`);
    await untilSignal();
    await webhooks.delete({ id: made.id });
  } finally {
    await close(server);
  }
}

function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65_535)) throw new UsageError('--port is not a whole number from 0 to 65535');
  return port;
}

function isHttp(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

/** Handles one delivery: verifies, forwards and prints it. Answers 400 if its signature is invalid. */
async function receiveDelivery(
  cli: Cli,
  { forwardTo, json }: Flags,
  secret: string | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    const body = await readBody(request);
    const { id } = verifyWebhook(body, request.headers, secret ?? []);
    const { type, data } = JSON.parse(body.toString()) as { type: string; data: Record<string, unknown> };
    const about = data.submission_id ?? data.webhook_id ?? '';
    const status = forwardTo === undefined ? undefined : await forwardDelivery(cli, forwardTo, request, body);
    const result = status === undefined ? '' : `  ${status}`;
    print(cli, json ? body.toString() : printable(`${id}  ${type}  ${about}${result}`));
    response.writeHead(status ?? 204).end();
  } catch (error) {
    printError(cli, printable(`rejected: ${(error as Error).message}`));
    response.writeHead(error instanceof WebhookVerificationError ? 400 : 502).end();
  }
}

/** Headers of the connection, which are not forwarded. */
const CONNECTION_HEADERS = new Set(['host', 'connection', 'content-length', 'transfer-encoding', 'expect']);

/** Forwards a delivery and returns the response status; prints the reason and returns 502 if the request fails. */
async function forwardDelivery(
  cli: Cli,
  address: string,
  { headers }: IncomingMessage,
  body: Buffer,
): Promise<number> {
  const passed = Object.entries(headers).filter(([name]) => !CONNECTION_HEADERS.has(name));
  try {
    const reply = await sendRequest(address, {
      method: 'POST',
      headers: Object.fromEntries(passed),
      body,
      signal: AbortSignal.timeout(FORWARD_TIMEOUT_MS),
    });
    await reply.body.dump();
    return reply.statusCode;
  } catch (error) {
    printError(cli, printable(`not forwarded to ${address}: ${(error as Error).message}`));
    return 502;
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    if (size > MAX_BODY_BYTES) throw new Error(`the body is larger than ${MAX_BODY_BYTES / 1024} KiB`);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

async function untilSignal(): Promise<void> {
  const stop = new AbortController();
  try {
    await Promise.race(STOP_SIGNALS.map((signal) => once(process, signal, { signal: stop.signal })));
  } finally {
    stop.abort();
  }
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
}
