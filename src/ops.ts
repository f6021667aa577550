import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen } from './listen.js';
import type { Logger } from './logger.js';
import type { Metrics } from './metrics.js';

/** Something this process needs to do its work. */
export type Check = {
  name: string;
  /** Resolves to a string, or throws, when not ready: why. Any other value is ready. Aborted when time is up. */
  check: (signal: AbortSignal) => Promise<unknown>;
};

export type OpsDeps = {
  metrics: Metrics;
  checks: readonly Check[];
  log: Logger;
  /** How long one check may take; 2000 by default. */
  checkTimeoutMs?: number;
};

export type OpsServer = {
  /** Starts to listen; a port of 0 picks a free one. */
  listen: (address: { host: string; port: number }) => Promise<{ port: number }>;
  /** Ends every connection. */
  close: () => Promise<void>;
};

type Answer = { status: number; contentType: string; body: string };

const CHECK_TIMEOUT_MS = 2_000;
const REQUEST_TIMEOUT_MS = 5_000;
const JSON_TYPE = 'application/json';

/**
 * The listener for probes and scrapes: `/livez` (the process answers), `/readyz` (every check passes, else 503 with
 * the reasons), `/metrics`. It has no authentication and is not to be exposed.
 */
export function createOps(deps: OpsDeps): OpsServer {
  const server = createServer(
    { requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS },
    (req, res) => {
      answer(deps, req).then(
        (found) => send(res, found),
        (error) => {
          deps.log.error({ err: error }, 'the ops listener failed');
          send(res, { status: 500, contentType: 'text/plain', body: 'failed; see the log\n' });
        },
      );
    },
  );
  return {
    listen: (address) => listen(server, address),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(deps: OpsDeps, req: IncomingMessage): Promise<Answer> {
  const [path] = (req.url ?? '').split('?', 1);
  if (req.method !== 'GET' && req.method !== 'HEAD') return text(405, 'GET or HEAD only\n');
  switch (path) {
    case '/livez':
      return json(200, { status: 'ok' });
    case '/readyz':
      return readiness(deps);
    case '/metrics': {
      const { contentType, text: body } = await deps.metrics.read();
      return { status: 200, contentType, body };
    }
    default:
      return text(404, 'there is /livez, /readyz and /metrics\n');
  }
}

/** The checks that do not pass, each with why. */
export async function findFailing(
  checks: readonly Check[],
  checkTimeoutMs = CHECK_TIMEOUT_MS,
): Promise<{ name: string; reason: string }[]> {
  const found = await Promise.all(
    checks.map(async (check) => ({ name: check.name, reason: await findReason(check, checkTimeoutMs) })),
  );
  return found.flatMap(({ name, reason }) => (reason === undefined ? [] : [{ name, reason }]));
}

async function readiness({ checks, checkTimeoutMs }: OpsDeps): Promise<Answer> {
  const failing = await findFailing(checks, checkTimeoutMs);
  return failing.length === 0
    ? json(200, { status: 'ready' })
    : json(503, { status: 'not ready', reasons: failing });
}

/** Why a check does not pass, or undefined when it does. */
async function findReason({ check }: Check, timeoutMs: number): Promise<string | undefined> {
  const time = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => {
      time.abort();
      resolve(`no answer within ${timeoutMs} ms`);
    }, timeoutMs);
  });
  try {
    const reason = await Promise.race([check(time.signal), late]);
    return typeof reason === 'string' ? reason : undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    clearTimeout(timer);
  }
}

function send(res: ServerResponse, { status, contentType, body }: Answer): void {
  res.writeHead(status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  });
  res.end(body);
}

function json(status: number, value: unknown): Answer {
  return { status, contentType: JSON_TYPE, body: `${JSON.stringify(value)}\n` };
}

function text(status: number, body: string): Answer {
  return { status, contentType: 'text/plain', body };
}
