/** Checks of the logs: register, keys, witnesses behind. */
import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../../../config/config.js';
import type { Storage } from '../../../config/object-storage.js';
import { equalBytes } from '../../../proof/bytes/primitives.js';
import { ENVIRONMENTS, environmentName } from '../../../protocol/environment.js';
import { openStatementKeys } from '../../attestations/signing/statement-keys.js';
import { hasErrno } from '../../core/files/errno.js';
import type { ShutdownHooks } from '../../core/shutdown.js';
import type { Pool } from '../../database/connect.js';
import { openOperatorStore } from '../../exports/destinations/operator-store.js';
import { raceWrites } from '../../exports/destinations/race.js';
import { openTufKeys } from '../../keys/tuf-keys.js';
import { readLogKeyStates } from '../../log/log-key-states.js';
import { openLogKeys } from '../../log/log-keys.js';
import { findActiveKey, listDsseKeys } from '../../log/store/dsse-keys.js';
import { listLogs } from '../../log/store/logs.js';
import { openRegister } from '../../witnessing/register/open-register.js';
import { logManager } from '../log-manager.js';
import { type Check, failed, ok, type Result, warning } from './finding.js';

const RACE_MS = 20_000;

type LogConfig = Pick<Config, 'secrets' | 'checkpointRegister' | 'logDomain' | 'logStorage'>;
type Hooks = Pick<ShutdownHooks, 'add'>;

/** The checks of keys, which need no table but compare with what is there. */
export function keyChecks(pool: Pool, { secrets }: LogConfig, hooks: Hooks): Check[] {
  return [
    { name: 'statement keys', run: () => checkStatementKeys(pool, secrets, hooks) },
    { name: 'log keys', run: () => checkLogKeys(pool, secrets, hooks) },
    { name: 'tuf keys', run: () => checkTufKeys(secrets, hooks) },
  ];
}

/** The checks of the register and of each log. */
export function logChecks(pool: Pool, config: LogConfig): Check[] {
  return [
    { name: 'register', run: () => checkRegister(config) },
    ...(config.logStorage === undefined ? [] : [storageCheck(config.logStorage)]),
    { name: 'log', run: () => checkLogs(pool, config) },
  ];
}

async function checkStatementKeys(pool: Pool, { dsse }: Config['secrets'], hooks: Hooks): Promise<Result[]> {
  const held = await openStatementKeys(dsse, hooks);
  await Promise.all(held.map(({ check }) => check()));
  const known = await listDsseKeys(pool);
  return ENVIRONMENTS.map((environment) => {
    const name = environmentName(environment);
    const active = findActiveKey(known, environment, Date.now());
    if (active === undefined) return ok('answer; published at the first start', name);
    return held.some(({ spki, environment: of }) => of === environment && equalBytes(spki, active.spki))
      ? ok('the key that signs now is held', name)
      : failed('DSSE_KEY_FILE lacks the key that signs now: add it, see attest dsse-keys list', name);
  });
}

async function checkLogKeys(pool: Pool, secrets: Config['secrets'], hooks: Hooks): Promise<Result[]> {
  const held = await openLogKeys(secrets, hooks);
  const states = await readLogKeyStates(pool, held);
  if (states.length === 0) return [ok('answer; the logs are made at the first start')];
  return states.map(({ log, algorithm, problem }) => {
    const about = `${log.origin} ${algorithm}`;
    if (problem === undefined) return ok('held', about);
    return algorithm === 'ed25519' ? failed(problem, about) : warning(problem, about);
  });
}

async function checkTufKeys({ tuf }: Config['secrets'], hooks: Hooks): Promise<Result[]> {
  if (tuf.length === 0) return [ok('not set: no TUF repository')];
  await openTufKeys(tuf, hooks);
  return [ok(`${tuf.length} held`)];
}

/** A folder is written to; conditional writes to a store are raced; of a witness the live log's entry is read. */
async function checkRegister({ checkpointRegister: place, logDomain }: LogConfig): Promise<Result[]> {
  if (typeof place !== 'string' && 'storage' in place) return raceStorage(place);
  if (typeof place !== 'string') {
    await (await openRegister(place)).read(`live.${logDomain ?? 'log.example.com'}`);
    return [ok(`the witness ${place.url} answers`)];
  }
  return [await tryFolder(place, 'all processes need this one folder, on another disk than Postgres')];
}

async function tryFolder(folder: string, advice: string): Promise<Result> {
  const file = join(folder, `.doctor-${randomBytes(6).toString('hex')}`);
  try {
    await writeFile(file, '', { flag: 'wx', mode: 0o600, flush: true });
    await rm(file);
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return warning(`${folder} is not there: it is made at the first start`);
    return failed(`${folder} cannot be written: ${(error as Error).message}`);
  }
  return ok(`${folder} can be written; ${advice}`);
}

function storageCheck(storage: Storage): Check {
  return {
    name: 'log storage',
    run: async () =>
      'folder' in storage
        ? [await tryFolder(storage.folder, 'a web server serves it')]
        : raceStorage(storage),
  };
}

async function raceStorage(storage: Storage): Promise<Result[]> {
  const { store, nameOf, location, close } = await openOperatorStore(storage);
  const name = `doctor/${randomBytes(6).toString('hex')}`;
  try {
    const races = await raceWrites(store, nameOf(name), AbortSignal.timeout(RACE_MS));
    return [ok(`${location(name)}: one writer won each of ${races} races`)];
  } finally {
    await close();
  }
}

async function checkLogs(pool: Pool, { checkpointRegister, logDomain }: LogConfig): Promise<Result[]> {
  const [first] = await listLogs(pool);
  if (first === undefined) {
    if (logDomain === undefined) return [failed('LOG_DOMAIN is not set, and the database has no log yet')];
    return [ok(`none yet; the first will be live.${logDomain} and test.${logDomain}`)];
  }
  const domain = first.origin.slice(first.origin.indexOf('.') + 1);
  if (logDomain !== undefined && logDomain !== domain)
    return [failed(`LOG_DOMAIN is ${logDomain}, the logs are of ${domain}: it cannot change`)];
  const logs = await logManager(pool, await openRegister(checkpointRegister)).status();
  return logs.map(({ origin, state, leaves, publishedSize, registerSize, reason }) => {
    const text = `${state}, ${leaves} leaves, ${publishedSize} published, ${registerSize ?? 'none'} in the register`;
    if (state === 'closed') return ok(text, origin);
    return state === 'ok'
      ? ok(text, origin)
      : failed(`${text}: ${reason ?? 'see attest log --help'}`, origin);
  });
}
