/** A git server over https: `git http-backend` behind a server of Node's with a certificate by a CA of the test's own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { Test } from 'tap';
import { makeServerTls } from '../../certificates/server-tls.js';
import { GIT } from '../../foreign/git.js';

export const GOOD_TOKEN = 'token-that-may-write-Zq81';
export const READ_ONLY_TOKEN = 'token-that-may-read-Zq82';
export const EXPIRED_TOKEN = 'token-of-last-year-Zq83';

export type GitHttpsServer = {
  /** `https://127.0.0.1:<port>`. */
  origin: string;
  port: number;
  caFile: string;
  /** The requests so far, as `GET /path?query`. */
  requests: string[];
  /** Answers the requests that it returns true for, in the place of git; undefined ends that. */
  intercept(handle: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined): void;
};

/** Serves the repositories below `root` until the test ends. */
export async function startGitHttps(test: Test, root: string, altName?: string): Promise<GitHttpsServer> {
  const { tls, caFile } = await makeServerTls(test, altName);
  const requests: string[] = [];
  let handle: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  const server = createServer(tls, (request, response) => {
    requests.push(`${request.method} ${request.url}`);
    if (handle?.(request, response)) return;
    const status = findStatus(request);
    if (status !== undefined) refuse(response, status);
    else serve(root, request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  test.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    origin: `https://127.0.0.1:${port}`,
    port,
    caFile,
    requests,
    intercept: (wanted) => {
      handle = wanted;
    },
  };
}

/** As git hosts do it: 401 for no or an unknown token, 403 for one that has expired or may not do this. */
function findStatus({ headers, url = '' }: IncomingMessage): number | undefined {
  const [kind, value = ''] = (headers.authorization ?? '').split(' ');
  const token = kind === 'Basic' ? Buffer.from(value, 'base64').toString().split(':')[1] : undefined;
  if (token === GOOD_TOKEN) return undefined;
  if (token === EXPIRED_TOKEN) return 403;
  if (token === READ_ONLY_TOKEN) return url.includes('git-receive-pack') ? 403 : undefined;
  return 401;
}

function refuse(response: ServerResponse, status: number): void {
  const headers = { 'Content-Type': 'text/plain', 'WWW-Authenticate': 'Basic realm="git"' };
  response
    .writeHead(status, headers)
    .end(status === 401 ? 'Bad credentials\n' : 'This token may not do that\n');
}

function serve(root: string, request: IncomingMessage, response: ServerResponse): void {
  const child = spawn(GIT, ['http-backend'], {
    env: variables(root, request),
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  response.on('close', () => child.kill());
  pipeline(request, child.stdin).catch(() => {});
  let head: Buffer | undefined = Buffer.alloc(0);
  child.stdout.on('data', (chunk: Buffer) => {
    if (head === undefined) return response.write(chunk);
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\r\n\r\n');
    if (end === -1) return;
    writeHead(head.subarray(0, end).toString(), response);
    response.write(head.subarray(end + 4));
    head = undefined;
  });
  child.stdout.on('end', () => response.end());
}

/** The variables of CGI (RFC 3875). */
function variables(root: string, { method, url = '', headers }: IncomingMessage): NodeJS.ProcessEnv {
  const { pathname, search } = new URL(url, 'https://localhost');
  return {
    PATH: process.env.PATH,
    GIT_PROJECT_ROOT: root,
    GIT_HTTP_EXPORT_ALL: '1',
    GIT_PROTOCOL: String(headers['git-protocol'] ?? ''),
    PATH_INFO: decodeURIComponent(pathname),
    QUERY_STRING: search.slice(1),
    REQUEST_METHOD: method,
    REMOTE_USER: 'somebody',
    CONTENT_TYPE: headers['content-type'],
    CONTENT_LENGTH: headers['content-length'],
    HTTP_CONTENT_ENCODING: headers['content-encoding'],
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
  };
}

/** Passes on the status and headers of a CGI program. */
function writeHead(head: string, response: ServerResponse): void {
  for (const line of head.split('\r\n')) {
    const [name = '', value = ''] = line.split(': ');
    if (name === 'Status') response.statusCode = Number.parseInt(value, 10);
    else response.setHeader(name, value);
  }
}
