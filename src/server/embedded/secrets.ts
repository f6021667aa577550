import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readOptionalFile } from '../core/files/read-optional-file.js';
import { writeFileAtomic } from '../core/files/write-file-atomic.js';
import { formatSecretKey, parseKeyRing } from '../keys/key-ring.js';
import { parseSigningKey, type Secrets, type SigningKeys, type SigningKeyUse } from '../keys/secrets.js';
import { EmbeddedError } from './embedded-error.js';

/** Files of `<data dir>/secrets`. */
const SECRET_KEY_FILE = 'secret-key';
const ADMIN_TOKEN_FILE = 'admin-token';

/**
 * The secrets of a data directory, less those that were given: read from `<data dir>/secrets`, and made there (0600)
 * the first time. The caller holds the directory's lock. Throws EmbeddedError when a file is there but is not what it
 * should be; it is never replaced.
 */
export async function openSecrets(
  dataDir: string,
  given: Partial<Secrets> = {},
): Promise<Secrets & { adminToken: string }> {
  const dir = secretsDir(dataDir);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  return {
    secretKeys: given.secretKeys ?? (await openFile(dir, SECRET_KEY_FILE, newSecretKey, parseKeyRing)),
    dsse: given.dsse ?? (await openSigningKeys(dir, 'dsse')),
    logMlDsa: given.logMlDsa,
    log: given.log ?? (await openSigningKeys(dir, 'log')),
    tuf: given.tuf ?? [await openSigningKey(dir, 'tuf.pem', 'log')],
    adminToken: given.adminToken ?? (await openFile(dir, ADMIN_TOKEN_FILE, newToken, parseToken)),
  };
}

/** Reads the DSSE keys of a data directory; undefined if it has none. Throws EmbeddedError of a file that cannot be used. */
export async function findDsseKeys(dataDir: string): Promise<Secrets['dsse'] | undefined> {
  const dir = secretsDir(dataDir);
  const find = (environment: string) =>
    findFile(dir, `dsse-${environment}.pem`, (pem) => parseSigningKey(pem, 'dsse'));
  const [live, test] = [await find('live'), await find('test')];
  return live && test && { live: [live], test: [test] };
}

function secretsDir(dataDir: string): string {
  return join(dataDir, 'secrets');
}

async function openSigningKeys(dir: string, use: SigningKeyUse): Promise<SigningKeys> {
  const open = (environment: string) => openSigningKey(dir, `${use}-${environment}.pem`, use);
  return { live: [await open('live')], test: [await open('test')] };
}

function openSigningKey(dir: string, name: string, use: SigningKeyUse): Promise<KeyObject> {
  return openFile(
    dir,
    name,
    () => newSigningKey(use),
    (pem) => parseSigningKey(pem, use),
  );
}

async function openFile<T>(
  dir: string,
  name: string,
  make: () => string,
  parse: (text: string) => T,
): Promise<T> {
  const found = await findFile(dir, name, parse);
  if (found !== undefined) return found;
  const text = make();
  await writeFileAtomic(join(dir, name), text);
  return parse(text.trim());
}

async function findFile<T>(dir: string, name: string, parse: (text: string) => T): Promise<T | undefined> {
  const path = join(dir, name);
  try {
    const text = await readOptionalFile(path);
    return text === undefined ? undefined : parse(text.trim());
  } catch (error) {
    throw new EmbeddedError(
      'data_dir_unusable',
      `The secret in ${path} cannot be used: ${(error as Error).message}.`,
    );
  }
}

function newSecretKey(): string {
  return `${formatSecretKey('k1', randomBytes(32))}\n`;
}

function newToken(): string {
  return `adm_${randomBytes(32).toString('base64url')}\n`;
}

function parseToken(text: string): string {
  if (!/^[\w-]{24,256}$/.test(text)) throw new Error('it is not an admin token');
  return text;
}

function newSigningKey(use: SigningKeyUse): string {
  const { privateKey } =
    use === 'dsse' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('ed25519');
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}
