import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import type { Command } from 'commander';
import { type AdminCall, createAdminCall } from '../../client/admin.js';
import { AttestationError } from '../../client/error.js';
import { readAdminConfig } from '../../config/client-config.js';
import { compileWriter } from '../../server/json/codec.js';
import { type Cli, print } from '../cli.js';
import { openFetch } from '../input/network.js';
import { readWithFlags } from './setting-flags.js';

/** Flags of commands that call the admin API. */
export type AdminFlags = { url?: string; dataDir?: string; json?: boolean };

/** Help text about them. */
export const ADMIN_HELP = `
Calls the admin API of --url, else ATTEST_ADMIN_URL, else ATTEST_URL, with the token of ATTEST_ADMIN_TOKEN; by default
that of \`attest up\` in the data directory. \`attest api\` serves it if ADMIN_TOKEN is set, on ADMIN_PORT if that is set,
else on the API's port.`;

/** Page size of requests that list everything. */
const PAGE = 200;

/** Adds the flags that select the service. */
export function addAdminFlags(command: Command): Command {
  return command
    .option('--url <url>', 'base URL of the admin API (ATTEST_ADMIN_URL, else ATTEST_URL)')
    .option('--data-dir <dir>', 'data directory of `attest up` (DATA_DIR, default: .data)')
    .option('--json', 'print JSON');
}

/** Calls `use` with a client of the admin API. Explains errors of a service that is down or has no admin API. */
export async function withAdminApi(
  cli: Cli,
  flags: AdminFlags,
  use: (call: AdminCall) => Promise<void>,
): Promise<void> {
  const env = flags.url === undefined ? cli.env : { ...cli.env, ATTEST_ADMIN_URL: undefined };
  const config = readWithFlags(env, flags, readAdminConfig);
  await use(createAdminCall({ ...config, fetch: openFetch(cli.env) })).catch((error: unknown) => {
    const reason = explainAdminError(config.baseUrl, error);
    throw reason === undefined ? error : new Error(reason, { cause: error });
  });
}

/** A message with the likely cause, or undefined if the error speaks for itself. */
function explainAdminError(baseUrl: string, error: unknown): string | undefined {
  if (!(error instanceof AttestationError)) return undefined;
  if (error.code === 'connection.failed' && error.retryable) {
    return `${baseUrl} does not answer (${error.message}, ${error.code}): is attest up running?`;
  }
  const isUnknownRpc = error.cause instanceof ConnectError && error.cause.code === Code.Unimplemented;
  return isUnknownRpc
    ? `${baseUrl} has no admin API: set ADMIN_TOKEN where \`attest api\` runs, or set ATTEST_ADMIN_URL to its ADMIN_PORT`
    : undefined;
}

/** Reads all pages of a list, up to `limit` items. */
export async function collectPages<T>(
  readPage: (page: { limit: number; cursor: string }) => Promise<{ data: T[]; nextCursor: string }>,
  limit = Number.POSITIVE_INFINITY,
): Promise<T[]> {
  const all: T[] = [];
  let cursor = '';
  do {
    const page = await readPage({ limit: Math.min(PAGE, limit - all.length), cursor });
    all.push(...page.data);
    cursor = page.nextCursor;
  } while (cursor !== '' && all.length < limit);
  return all;
}

/** Prints a message as the JSON of the REST API. */
export function printJson<D extends DescMessage>(cli: Cli, desc: D, message: MessageShape<D>): void {
  print(cli, compileWriter(desc)(message));
}

/** Prints messages as one JSON array. */
export function printJsonList<D extends DescMessage>(
  cli: Cli,
  desc: D,
  messages: readonly MessageShape<D>[],
): void {
  print(cli, `[${messages.map(compileWriter(desc)).join(',')}]`);
}
