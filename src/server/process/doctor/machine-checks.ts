/** Checks of this machine: programs, disks, certificate. */
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { statfs } from 'node:fs/promises';
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { promisify } from 'node:util';
import type { Config } from '../../../config/config.js';
import { readTlsPair } from '../../../config/tls-files.js';
import { version } from '../../core/version.js';
import { type Check, failed, ok, type Result, warning } from './finding.js';

const MIN_NODE = [20, 19] as const;
/** The first release of Node that gets security fixes. */
const MAINTAINED_NODE = 22;
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
const LITTLE_SPACE = GIB;
/** A register has one file of no bytes for each log. */
const LITTLE_FOR_REGISTER = 16 * MIB;
const DAY_MS = 86_400_000;
const RENEWAL_DAYS = 14;

type MachineConfig = Pick<
  Config,
  'dataDir' | 'exportSpoolBytes' | 'checkpointRegister' | 'logStorage' | 'tls' | 'baseUrl'
>;

/** The checks of this machine. */
export function machineChecks(config: MachineConfig, now: Date): Check[] {
  return [
    { name: 'versions', run: async () => [checkNode(process.versions.node)] },
    { name: 'programs', run: async () => Promise.all([findProgram('git'), findProgram('ssh', '-V')]) },
    { name: 'disk', run: () => checkDisks(config) },
    { name: 'certificate', run: async () => [checkCertificate(config, now)] },
  ];
}

function checkNode(node: string): Result {
  const [major = 0, minor = 0] = node.split('.').map(Number);
  const found = `attest ${version()} on Node ${node}`;
  if (major < MIN_NODE[0] || (major === MIN_NODE[0] && minor < MIN_NODE[1]))
    return failed(`${found}: Node ${MIN_NODE.join('.')} or newer is needed`);
  if (major < MAINTAINED_NODE)
    return warning(`${found}, which gets no security fixes any more: install 22 or 24`);
  return ok(found);
}

/** Only exports to git repositories need them. */
async function findProgram(name: string, flag = '--version'): Promise<Result> {
  try {
    const { stdout, stderr } = await promisify(execFile)(name, [flag], { timeout: 5_000 });
    return ok(`${stdout}${stderr}`.split('\n', 1)[0] ?? '', name);
  } catch {
    return warning('not found: exports to git repositories need it', name);
  }
}

async function checkDisks({
  dataDir,
  exportSpoolBytes,
  checkpointRegister,
  logStorage,
}: MachineConfig): Promise<Result[]> {
  const temporary = await freeBytes(tmpdir());
  const found = [
    temporary < exportSpoolBytes
      ? warning(
          `${sizeText(temporary)} free, less than the temporary files of exports may take (EXPORT_SPOOL_MIB=${exportSpoolBytes / MIB}): set TMPDIR`,
          tmpdir(),
        )
      : ok(`${sizeText(temporary)} free`, tmpdir()),
  ];
  const folders = new Map([[dataDir, LITTLE_SPACE]]);
  if (logStorage !== undefined && 'folder' in logStorage) folders.set(logStorage.folder, LITTLE_SPACE);
  if (typeof checkpointRegister === 'string') folders.set(checkpointRegister, LITTLE_FOR_REGISTER);
  for (const [folder, little] of folders) {
    const free = await freeBytes(folder).catch(() => undefined);
    if (free === undefined) continue;
    const text = `${sizeText(free)} free`;
    found.push(free < little ? failed(`${text}: make room`, folder) : ok(text, folder));
  }
  return found;
}

async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

/** Bytes for people. */
export function sizeText(bytes: number): string {
  return bytes < GIB ? `${Math.floor(bytes / MIB)} MiB` : `${(bytes / GIB).toFixed(1)} GiB`;
}

function isFor(leaf: X509Certificate, host: string): boolean {
  const address = host.replace(/^\[|\]$/g, '');
  return (isIP(address) === 0 ? leaf.checkHost(host) : leaf.checkIP(address)) !== undefined;
}

function checkCertificate({ tls, baseUrl }: MachineConfig, now: Date): Result {
  if (tls === undefined) {
    if (baseUrl?.startsWith('https:'))
      return ok('TLS ends at a proxy: BASE_URL is https, TLS_CERT_FILE is not set');
    return warning(
      'no TLS: set TLS_CERT_FILE and TLS_KEY_FILE, or have a proxy end it and set BASE_URL to its address',
    );
  }
  const leaf = new X509Certificate(readTlsPair(tls, now.getTime()).cert);
  const host = baseUrl === undefined ? undefined : new URL(baseUrl).hostname;
  if (host !== undefined && !isFor(leaf, host))
    return failed(`${tls.certFile} is not for ${host}, the host of BASE_URL`);
  const days = Math.floor((Date.parse(leaf.validTo) - now.getTime()) / DAY_MS);
  const text = `${tls.certFile} is valid for ${days} more days`;
  return days < RENEWAL_DAYS ? warning(`${text}: renew it, then send SIGHUP`) : ok(text);
}
