/** Credentials of registries, where Docker and its credential helpers keep them. */
import { type ExecFileException, execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Env } from '../../config/settings.js';
import { FormatError } from '../../proof/bytes/format-error.js';
import { parseJsonText } from '../../proof/verify/read/json-text.js';
import { UsageError } from '../cli.js';
import { readInputFile } from '../input/input-file.js';

/** Credentials of one registry; `source` is where they come from, for errors. */
export type Credentials = { readonly source: string } & (
  | { readonly username: string; readonly password: string }
  /** An OAuth2 refresh token. */
  | { readonly identityToken: string }
);

const MAX_CONFIG_BYTES = 1024 * 1024;
const MAX_HELPER_BYTES = 64 * 1024;
const HELPER_TIMEOUT_MS = 30_000;
/** The user name for which a helper's secret is an identity token. */
const TOKEN_USER = '<token>';
const DOCKER_HUB = 'docker.io';
const DOCKER_HUB_KEY = 'https://index.docker.io/v1/';

type Json = Readonly<Record<string, unknown>>;

/**
 * Finds the credentials of a registry in `config.json` of DOCKER_CONFIG or ~/.docker: by its credential helper, by the
 * store of all, or in the file itself. Returns undefined if there are none. Throws UsageError if the file or the helper
 * cannot be used.
 */
export async function findCredentials(
  env: Env,
  registry: string,
  timeoutMs = HELPER_TIMEOUT_MS,
): Promise<Credentials | undefined> {
  const home = env.HOME || env.USERPROFILE;
  const folder = env.DOCKER_CONFIG || (home ? join(home, '.docker') : undefined);
  const file = folder && join(folder, 'config.json');
  if (file === undefined || !existsSync(file)) return undefined;
  const config = await readConfig(file);
  const key = registry === DOCKER_HUB ? DOCKER_HUB_KEY : registry;
  const helper = objectIn(config, 'credHelpers')[key] ?? config.credsStore;
  const found = typeof helper === 'string' && helper !== '' && (await askHelper(env, helper, key, timeoutMs));
  return found || readAuth(file, objectIn(config, 'auths'), key);
}

async function readConfig(file: string): Promise<Json> {
  const bytes = await readInputFile(file, "Docker's configuration", MAX_CONFIG_BYTES);
  try {
    return asObject(parseJsonText(bytes, MAX_CONFIG_BYTES)) ?? {};
  } catch (error) {
    if (error instanceof FormatError) throw new UsageError(`${file} ${error.message}`);
    throw error;
  }
}

/** What `docker login` wrote, under the registry's name or address. */
function readAuth(file: string, auths: Json, key: string): Credentials | undefined {
  const name = Object.keys(auths).find((name) => name === key || hostOf(name) === key);
  const entry = name === undefined ? undefined : asObject(auths[name]);
  if (entry === undefined) return undefined;
  const { auth, identitytoken } = entry;
  if (typeof identitytoken === 'string' && identitytoken !== '')
    return { source: file, identityToken: identitytoken };
  if (typeof auth !== 'string' || auth === '') return undefined;
  const [, username, password] = /^([^:]+):(.*)$/s.exec(Buffer.from(auth, 'base64').toString()) ?? [];
  if (username === undefined || password === undefined)
    throw new UsageError(`${file}: "auth" of ${key} is not base64 of a user name, a colon and a password`);
  return { source: file, username, password };
}

function hostOf(name: string): string | undefined {
  return /^https?:\/\/([^/]+)/.exec(name)?.[1];
}

/** Asks `docker-credential-<name>`. Returns undefined if it has none. Prints nothing of its output: it may be a secret. */
async function askHelper(
  env: Env,
  name: string,
  key: string,
  timeoutMs: number,
): Promise<Credentials | undefined> {
  const program = `docker-credential-${name}`;
  const failed = (reason: string) => new UsageError(`the credential helper ${program} ${reason}`);
  if (!/^[\w.-]+$/.test(name)) throw failed('has a malformed name');
  const { error, stdout } = await runHelper(env, program, key, timeoutMs);
  if (error !== null) {
    if (/credentials not found/i.test(stdout)) return undefined;
    const { code, killed } = error;
    throw failed(killed ? `had no answer in ${timeoutMs / 1000} s` : `failed (${code})`);
  }
  try {
    const { Username, Secret } = asObject(parseJsonText(stdout, MAX_HELPER_BYTES)) ?? {};
    if (typeof Username !== 'string' || typeof Secret !== 'string')
      throw new FormatError('has no Username and Secret');
    const source = program;
    if (Username === TOKEN_USER) return { source, identityToken: Secret };
    return { source, username: Username, password: Secret };
  } catch (error) {
    if (error instanceof FormatError) throw failed(`printed an answer that ${error.message}`);
    throw error;
  }
}

type Ran = { readonly error: ExecFileException | null; readonly stdout: string };

function runHelper(env: Env, program: string, key: string, timeoutMs: number): Promise<Ran> {
  const limits = { timeout: timeoutMs, killSignal: 'SIGKILL', maxBuffer: MAX_HELPER_BYTES } as const;
  return new Promise((resolve) => {
    const child = execFile(program, ['get'], { env: { ...env }, ...limits }, (error, stdout) =>
      resolve({ error, stdout }),
    );
    // A helper that ends without reading is judged by its exit code.
    child.stdin?.on('error', () => {});
    child.stdin?.end(key);
  });
}

function objectIn(json: Json, name: string): Json {
  return asObject(json[name]) ?? {};
}

function asObject(value: unknown): Json | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined;
}
