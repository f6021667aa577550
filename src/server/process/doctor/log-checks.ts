/** Checks of the logs: register, keys, witnesses behind. */
import { existsSync } from 'node:fs';
import type { Config } from '../../../config/config.js';
import { equalBytes } from '../../../proof/bytes/primitives.js';
import { ENVIRONMENTS, environmentName } from '../../../protocol/environment.js';
import { openStatementKeys } from '../../attestations/signing/statement-keys.js';
import type { ShutdownHooks } from '../../core/shutdown.js';
import type { Pool } from '../../database/connect.js';
import { openOperatorStore } from '../../exports/destinations/operator-store.js';
import { openTufKeys } from '../../keys/tuf-keys.js';
import { readLogKeyStates } from '../../log/log-key-states.js';
import { openLogKeys } from '../../log/log-keys.js';
import { findActiveKey, listDsseKeys } from '../../log/store/dsse-keys.js';
import { listLogs } from '../../log/store/logs.js';
import { openRegister } from '../../witnessing/register/open-register.js';
import { logManager } from '../log-manager.js';
import { type Check, failed, ok, type Result, warning } from './finding.js';
import { raceStorage, storageCheck, tryFolder } from './storage-checks.js';

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
    ...(config.logStorage === undefined ? [] : [storageCheck(pool, config.logStorage)]),
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
  if (typeof place !== 'string' && 'storage' in place) return raceRegister(place);
  if (typeof place !== 'string') {
    await (await openRegister(place)).read(`live.${logDomain ?? 'log.example.com'}`);
    return [ok(`the witness ${place.url} answers`)];
  }
  return [await tryFolder(place, 'all processes need this one folder, on another disk than Postgres')];
}

async function raceRegister(
  place: Extract<LogConfig['checkpointRegister'], { storage: unknown }>,
): Promise<Result[]> {
  const opened = await openOperatorStore(place);
  try {
    return [await raceStorage(opened)];
  } finally {
    await opened.close();
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
  if (typeof checkpointRegister === 'string' && !existsSync(checkpointRegister))
    return [
      failed(
        `the register ${checkpointRegister} is not there, and the logs have begun: each process needs the same`,
      ),
    ];
  const logs = await logManager(pool, await openRegister(checkpointRegister)).status();
  return logs.map(({ origin, state, leaves, publishedSize, registerSize, reason }) => {
    const text = `${state}, ${leaves} leaves, ${publishedSize} published, ${registerSize ?? 'none'} in the register`;
    if (state === 'closed') return ok(text, origin);
    return state === 'ok'
      ? ok(text, origin)
      : failed(`${text}: ${reason ?? 'see attest log --help'}`, origin);
  });
}
