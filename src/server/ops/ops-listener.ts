import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listen } from '../core/http/listen.js';
import type { Logger } from '../core/logger.js';
import { untilAborted } from '../core/until-aborted.js';
import type { Metrics } from './metrics.js';

/** A readiness check. */
export type Check = {
  name: string;
  /** The only environment that fails with this check; all do if undefined. */
  environment?: string;
  /** Whom it asks, for the reason when there is no answer; the database if undefined. */
  asks?: string;
  /** The process stays ready when this check fails: the reason is for the operator. */
  isWarning?: true;
  /** Resolves to the reason, or throws, if not ready; any other value means ready. `signal` aborts on timeout. */
  check: (signal: AbortSignal) => Promise<unknown>;
};

type OpsDeps = {
  metrics: Pick<Metrics, 'read'>;
  checks: readonly Check[];
  log: Pick<Logger, 'error'>;
  /** Timeout of one check; 2000 by default. */
  checkTimeoutMs?: number;
};

type OpsServer = {
  /** Starts listening; port 0 picks a free one. */
  listen: (address: { host: string; port: number }) => Promise<{ port: number }>;
  /** Closes the listener and every connection. */
  close: () => Promise<void>;
};

type Answer = { status: number; contentType: string; body: string };

const CHECK_TIMEOUT_MS = 2_000;
const REQUEST_TIMEOUT_MS = 5_000;
const JSON_TYPE = 'application/json';

/**
 * The listener for probes and scrapes: `/livez` (the process responds), `/readyz` (the process can serve an environment,
 * else 503; with reasons in both cases), `/readyz/<environment>` (it can serve that one), `/metrics`. It has no
 * authentication: do not expose it.
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
      return readiness(await lookAt(deps.checks, deps.checkTimeoutMs));
    case '/metrics': {
      const { contentType, text: body } = await deps.metrics.read();
      return { status: 200, contentType, body };
    }
    default:
      if (deps.checks.some(({ environment }) => path === `/readyz/${environment}`)) {
        return environmentReadiness(deps, path?.slice('/readyz/'.length) ?? '');
      }
      return text(404, 'there is /livez, /readyz and /metrics\n');
  }
}

/** Whether a process is ready, as `/readyz` reports it. */
export async function isReady(checks: readonly Check[]): Promise<boolean> {
  return isAnythingReady(await lookAt(checks));
}

type Looked = { check: Check; reason: string | undefined };

/** Runs all checks, each with a timeout in milliseconds. @returns why each fails; undefined for those that pass */
export async function findReasons(
  checks: readonly Check[],
  timeoutMs: number,
): Promise<(string | undefined)[]> {
  return (await lookAt(checks, timeoutMs)).map(({ reason }) => reason);
}

function lookAt(checks: readonly Check[], timeoutMs = CHECK_TIMEOUT_MS): Promise<Looked[]> {
  return Promise.all(checks.map(async (check) => ({ check, reason: await findReason(check, timeoutMs) })));
}

/** All checks without an environment pass, and those of at least one environment, if there are any. Warnings do not count. */
function isAnythingReady(looked: readonly Looked[]): boolean {
  const failing = looked
    .filter(({ check, reason }) => reason !== undefined && check.isWarning !== true)
    .map(({ check }) => check.environment);
  const environments = new Set(looked.flatMap(({ check }) => check.environment ?? []));
  const isLost = environments.size > 0 && [...environments].every((each) => failing.includes(each));
  return !failing.includes(undefined) && !isLost;
}

function readiness(looked: readonly Looked[]): Answer {
  const reasons = looked.flatMap(({ check: { name }, reason }) =>
    reason === undefined ? [] : [{ name, reason }],
  );
  const why = reasons.length === 0 ? {} : { reasons };
  return isAnythingReady(looked)
    ? json(200, { status: 'ready', ...why })
    : json(503, { status: 'not ready', ...why });
}

async function environmentReadiness({ checks, checkTimeoutMs }: OpsDeps, wanted: string): Promise<Answer> {
  const needed = checks.filter(({ environment }) => environment === undefined || environment === wanted);
  return readiness(await lookAt(needed, checkTimeoutMs));
}

/** Why a check fails; undefined if it passes. */
async function findReason(
  { asks = 'the database', check }: Check,
  timeoutMs: number,
): Promise<string | undefined> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const reason = await untilAborted(check(signal), signal);
    return typeof reason === 'string' ? reason : undefined;
  } catch (error) {
    if (signal.aborted) return `no answer from ${asks} within ${timeoutMs} ms`;
    return error instanceof Error ? error.message : String(error);
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
