/** Turns the output of git and ssh into one line for the export's owner. */
import type { CommandResult } from './command.js';

const MAX_REMOTE_LENGTH = 300;
const MAX_LENGTH = 500;

/** Output of git if another writer moved the branch between a fetch and a push. */
const LOST_RACE =
  /\((?:fetch first|non-fast-forward|stale info|cannot lock ref|failed to (?:update ref|lock)|unable to (?:lock|update)|incorrect old value|reference already exists|remote ref is at|[^)]*but expected)|couldn't find remote ref|\((?:atomic )?transaction failed/i;

/** Output of git if a connection to an address could not be made; another address may answer. */
const NOT_CONNECTED = /connect to (?:host|address) .*(?:timed out|refused|unreachable|no route)/i;

const AUTHENTICATION =
  'the server rejected the credentials: they are wrong, expired, or not for this repository';
const TOO_LARGE =
  'the server takes no object of this size: create the export with compression gzip or a filter';

/** The first pattern that the output matches gives the line. Specific ones come before what follows from them. */
const CAUSES: readonly (readonly [pattern: RegExp, line: string])[] = [
  [/no space left on device|disk quota exceeded|write error/i, "the disk of the service's machine is full"],
  [/out of memory|cannot allocate memory|alloc failed/i, 'git needs more memory than it may have'],
  [/error: 401|HTTP 401|authentication failed|could not read (?:username|password)/i, AUTHENTICATION],
  [/error: 403|HTTP 403/i, `${AUTHENTICATION}, or may not write (HTTP 403)`],
  [/error: 413|HTTP 413/i, `${TOO_LARGE} (HTTP 413)`],
  [
    /error: 404|HTTP 404|repository(?: .*)? not found|could not be found|does not appear to be a git repository|not a git repository/i,
    'the repository was not found, or the credentials do not show it',
  ],
  [/error: 429|HTTP 429/i, 'the server throttles requests (HTTP 429)'],
  [
    /error: 3\d\d|HTTP 3\d\d|redirect/i,
    'the server redirects, which is not followed: use the url that it redirects to',
  ],
  [
    /host key verification failed|host identification has changed|no .* host key is known/i,
    "the server's key is not host_key",
  ],
  [
    /load key .*(?:passphrase|format|libcrypto|denied|invalid)/i,
    'ssh cannot read ssh_key: it must be a private key without passphrase',
  ],
  [/marked as read only|write access .*not granted|not allowed to push/i, 'the credentials may not write'],
  [/permission denied|too many authentication failures/i, 'the server rejected ssh_key'],
  [/could not resolve host/i, "the server's name has no address"],
  [
    /mismatched algorithms|hash algorithm|unknown object format|object format/i,
    'repositories with SHA-256 object names are not supported',
  ],
  [/operation too slow|less than \d+ bytes/i, 'the server stopped to send and to receive'],
  [/timed out|timeout/i, 'the connection timed out'],
  [/connection refused/i, 'the server refused the connection'],
  [
    /non-properly terminated|SSL_ERROR_SYSCALL|unexpected eof|remote end hung up|unexpected disconnect|early eof|connection (?:reset|closed)|failed to connect|couldn't connect|broken pipe|empty reply/i,
    'the connection to the server broke',
  ],
  [/certificate|ssl|tls|handshake/i, "the connection's certificate or encryption was not accepted"],
  [
    /'remote-https?' is not a git command/i,
    "the git of the service's machine lacks https: its operator must install the full package git",
  ],
  [
    /cannot run ssh|ssh: not found|ssh: command not found/i,
    "the service's machine has no program ssh: its operator must install the package openssh-client",
  ],
  [
    /dumb http transport|http-push|not valid: is this a git repository/i,
    'the server does not speak the smart protocol of git: check the url',
  ],
];

/** Whether a push or fetch failed because another writer was faster. */
export function isLostRace({ stdout, stderr }: CommandResult): boolean {
  return LOST_RACE.test(`${stdout}\n${localLines(stderr)}`);
}

/** Whether no connection to the address was made. */
export function isNotConnected({ stderr }: CommandResult): boolean {
  return NOT_CONNECTED.test(stderr);
}

/**
 * One line that says why a command failed: our words for the cause, then the server's. Contains no secret and no control
 * character of the server's, and at most 500 characters.
 */
export function explain(result: CommandResult, what: string, secrets: readonly string[]): string {
  const local = localLines(result.stderr);
  const remote = sanitise(remoteLines(result.stderr), secrets).slice(0, MAX_REMOTE_LENGTH);
  const line = findCause(result.stdout, local, remote) ?? sanitise(lastLine(local), secrets);
  const words = remote === '' ? '' : `; the server says: ${remote}`;
  return sanitise(`${what} failed: ${line}${words}`, secrets).slice(0, MAX_LENGTH);
}

function findCause(stdout: string, local: string, remote: string): string | undefined {
  if (/exceeds .*(?:file size limit|maximum)|large files detected|pack exceeds maximum/i.test(remote))
    return TOO_LARGE;
  const refusal = /^!\t\S+\t\[(?:remote )?rejected\] \((.*)\)$/m.exec(stdout)?.[1];
  if (refusal !== undefined) return `the server refused the push (${refusal})`;
  return CAUSES.find(([pattern]) => pattern.test(local))?.[1];
}

/** The output of git and ssh themselves, without urls. Lines that the server sent have a prefix. */
function localLines(stderr: string): string {
  return splitLines(stderr)
    .filter((line) => !isRemote(line))
    .map((line) => line.replace(/\b(?:https?|ssh):\/\/[^\s']+/g, 'the url'))
    .join('\n');
}

function remoteLines(stderr: string): string {
  return splitLines(stderr)
    .filter(isRemote)
    .map((line) => line.replace(/^remote:\s*/, '').trim())
    .filter((line) => line !== '' && !/^(?:Enumerating|Counting|Compressing|Total|Resolving) /.test(line))
    .join(' ');
}

function isRemote(line: string): boolean {
  return line.startsWith('remote:');
}

function splitLines(text: string): string[] {
  return text.split(/[\r\n]+/);
}

function lastLine(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.findLast((line) => /^(?:fatal|error):/.test(line)) ?? lines.at(-1) ?? 'git gave no reason';
}

/** Removes secrets, and characters that move a cursor, turn text around or are invisible. */
function sanitise(text: string, secrets: readonly string[]): string {
  const plain = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]+/gu, ' ').replace(/ {2,}/g, ' ');
  return secrets
    .reduce((rest, secret) => (secret === '' ? rest : rest.replaceAll(secret, '[secret]')), plain)
    .trim();
}
