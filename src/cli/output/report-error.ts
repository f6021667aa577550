import { CommanderError } from 'commander';
import { AttestationError } from '../../client/error.js';
import { FolderError } from '../../client/files/folder-error.js';
import { ConfigError } from '../../config/settings.js';
import { printable } from '../../protocol/printable.js';
import { type Cli, printError, UsageError, type UsedService } from '../cli.js';

/** Prints an error on stderr, as one line or JSON, and sets the exit code. Prints the stack if ATTEST_DEBUG is set. */
export function reportError(cli: Cli, error: unknown, { json }: { json: boolean }): void {
  if (error instanceof CommanderError) {
    cli.exitCode = 2;
    // Commander has printed it already, except with --json, which silences it.
    if (json) printError(cli, JSON.stringify({ error: errorJson(error) }));
    return;
  }
  cli.exitCode = isUsage(error) ? 2 : Math.max(cli.exitCode, 1);
  const service = isAboutService(error) ? cli.service : undefined;
  if (json) {
    printError(
      cli,
      JSON.stringify({ error: errorJson(error), ...(service && { service: serviceJson(service) }) }),
    );
  } else {
    printError(cli, `error: ${errorText(error)}`);
    if (service !== undefined) printError(cli, serviceText(service));
  }
  if (cli.env.ATTEST_DEBUG && error instanceof Error) printError(cli, String(error.stack));
}

/** Whether another address or key may be the remedy: the service is not reached, or rejects the key, or has no such thing. */
function isAboutService(error: unknown): boolean {
  return error instanceof AttestationError && /^(connection|auth)\.|\.not_found$/.test(error.code);
}

function serviceText({ url, urlFrom, key, keyFrom }: UsedService): string {
  const [ofUrl, ofKey] =
    urlFrom === keyFrom ? ['', `both of ${keyFrom}`] : [` of ${urlFrom}`, `of ${keyFrom}`];
  return printable(`  called ${url}${ofUrl} with key ${key}, ${ofKey}`);
}

function serviceJson({ url, urlFrom, key, keyFrom }: UsedService): object {
  return { url, url_from: urlFrom, key, key_from: keyFrom };
}

/** Runs a check. Reports an error that prevents it and sets exit code 2, 'could not check'. */
export async function runCheck(
  cli: Cli,
  { json = false }: { json?: boolean },
  check: () => Promise<void>,
): Promise<void> {
  try {
    await check();
  } catch (error) {
    reportError(cli, error, { json });
    cli.exitCode = 2;
  }
}

/** Whether arguments, settings or input are wrong, and nothing was done. */
function isUsage(error: unknown): boolean {
  return [UsageError, ConfigError, CommanderError, FolderError].some((kind) => error instanceof kind);
}

/** An error as text; safe to print. */
export function errorText(error: unknown): string {
  if (error instanceof ConfigError || error instanceof FolderError)
    return error.message.split('\n').map(printable).join('\n');
  if (!(error instanceof AttestationError)) return printable(localMessage(error));
  const request = error.requestId === undefined ? '' : `, request ${error.requestId}`;
  const paths = detailsText(error);
  const more = error.message.includes(paths) ? '' : `: ${paths}`;
  const hint =
    error.code === 'connection.failed' && error.retryable
      ? ': is the service running, and is this its address?'
      : '';
  return printable(`${error.message} (${error.code}${request})${more}${hint}`);
}

/** The message of a local error; adds advice for EADDRINUSE. */
function localMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof CommanderError) return error.message.replace(/^error: /, '');
  const { code, address, port } = error as NodeJS.ErrnoException & { address?: string; port?: number };
  if (code !== 'EADDRINUSE') return error.message;
  return `${address}:${port} is taken: choose another port with --port or --ops-port`;
}

/** An error as the JSON of the REST API. */
export function errorJson(error: unknown): {
  code: string;
  message: string;
  details: object;
  request_id?: string;
} {
  const message = error instanceof AttestationError ? error.message : localMessage(error);
  if (!(error instanceof AttestationError)) {
    return { code: isUsage(error) ? 'command.usage' : 'command.failed', message, details: {} };
  }
  const { code, details, requestId } = error;
  return { code, message, details, ...(requestId !== undefined && { request_id: requestId }) };
}

/** The `known` names or the failing paths in the error's details; empty if there are none. */
function detailsText({ details: { errors, known } }: AttestationError): string {
  if (Array.isArray(known)) return `known names are ${known.join(', ')}`;
  if (!Array.isArray(errors)) return '';
  const places = errors.map((one) =>
    typeof one === 'object' && one !== null && !Array.isArray(one) ? `${one.path || '/'} ${one.message}` : '',
  );
  return places.filter((place) => place !== '').join('; ');
}
