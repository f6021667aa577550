/** Everything a campaign is played with: servers behind links, authorities, an endpoint, owners of keys, processes. */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type postgres from 'postgres';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import type { EnvironmentName } from '../../../src/protocol/environment.js';
import type { ShutdownHooks } from '../../../src/server/core/shutdown.js';
import { connectPool } from '../../../src/server/database/connect.js';
import { migrate } from '../../../src/server/database/migrate.js';
import { makeInstallation, makeUnlimitedKey } from '../../support/servers/installation.js';
import type { PatroniCluster } from '../../support/standby/patroni-cluster.js';
import { openRecord, type RecordWriter } from '../record.js';
import { type Authority, openAuthorities } from './authorities.js';
import { withDatabase } from './database.js';
import { type Disks, openDisks } from './disks.js';
import { type Endpoint, openEndpoint } from './endpoint.js';
import { type Nats, openNats } from './nats-nodes.js';
import { openPatroni } from './patroni.js';
import { type Role, type Supervised, supervise } from './processes.js';
import { openPostgres, type Server } from './servers.js';
import { openStandby, type Standby } from './standby.js';

/** A project with one API key and one subscription to every event. */
export type Owner = { name: string; environment: EnvironmentName; apiKey: string };

export type Scene = {
  dir: string;
  postgres: Server;
  nats: Nats;
  /** Postgres's, synchronous; undefined where no fault needs it. */
  standby: Standby | undefined;
  /** In place of both. */
  patroni: PatroniCluster | undefined;
  disks: Disks['disks'];
  authorities: Authority[];
  endpoint: Endpoint;
  owners: Owner[];
  processes: Supervised[];
  record: RecordWriter;
  /** What the logs sign with, in PEM: for forging what only the service could have signed. */
  logKeys: Record<EnvironmentName, string>;
  /** Runs statements past the service and the links. */
  withDatabase<T>(use: (sql: postgres.Sql) => Promise<T>): Promise<T>;
  /** Base URLs of the API processes that are up. */
  apis(): string[];
};

const PROCESSES: readonly { name: string; role: Role }[] = [
  { name: 'api-1', role: 'api' },
  { name: 'api-2', role: 'api' },
  { name: 'worker-1', role: 'worker' },
  { name: 'worker-2', role: 'worker' },
];
const OWNERS = [
  { name: 'ada', environment: 'live', number: Environment.LIVE },
  { name: 'bob', environment: 'live', number: Environment.LIVE },
  { name: 'cy', environment: 'test', number: Environment.TEST },
] as const;

const SETTINGS = {
  BATCH_INTERVAL: '500ms',
  NATS_REPLICAS: '3',
  // The shortest there is, so that batches become partial and failed when an authority is away.
  WITNESS_DEADLINE: '1m',
  ALLOW_INSECURE_DESTINATIONS: 'true',
  LOG_LEVEL: 'warn',
};

/** What a scene may have: file systems of the servers' own, where they can be mounted, a standby of Postgres, or Patroni. */
export type SceneOptions = { withDisks: boolean; withStandby: boolean; withPatroni: boolean };

/** Sets it up in `dir`, processes started, until `hooks`. */
export async function openScene(
  dir: string,
  hooks: ShutdownHooks,
  { withDisks, withStandby, withPatroni }: SceneOptions,
): Promise<Scene> {
  const record = openRecord(join(dir, 'record.jsonl'));
  const { paths, disks } = openDisks(dir, hooks, withDisks);
  const users = PROCESSES.map(({ name }) => name);
  const patroni = withPatroni ? await openPatroni(hooks) : undefined;
  const database = patroni?.server ?? (await openPostgres(paths.postgres, users, hooks));
  const standby = withStandby ? await openStandby(database, join(dir, 'standby'), hooks) : undefined;
  const nats = await openNats(paths.nats, users, hooks);
  const authorities = await openAuthorities(dir, hooks);
  const endpoint = await openEndpoint(record, hooks);
  const env = await prepare(database, { paths, authorities }, hooks);
  const owners = await makeOwners(database);
  const report = (problem: string) => record.write({ what: 'wrong', problem });
  const processes = PROCESSES.map(({ name, role }) => {
    const urls = { DATABASE_URL: database.urlFor(name), NATS_URL: nats.urlFor(name) };
    const logFile = join(dir, `${name}.log`);
    return supervise({ name, role, env: { ...env, ...urls }, logFile }, report, hooks);
  });
  await Promise.all(processes.map((each) => each.start()));
  return {
    dir,
    postgres: database,
    nats,
    standby,
    patroni: patroni?.cluster,
    disks,
    authorities,
    endpoint,
    owners,
    processes,
    record,
    logKeys: readLogKeys(env.LOG_KEY_FILE ?? ''),
    withDatabase: async (use) => withDatabase((await patroni?.cluster.leaderUrl()) ?? database.url(), use),
    apis: () => processes.flatMap((each) => (each.role === 'api' ? (each.up()?.baseUrl ?? []) : [])),
  };
}

/** @param setting `live=<path>,test=<path>` */
function readLogKeys(setting: string): Scene['logKeys'] {
  const paths = new Map(setting.split(',').map((pair) => pair.split('=') as [string, string]));
  const read = (environment: EnvironmentName) => readFileSync(paths.get(environment) ?? '', 'utf8');
  return { live: read('live'), test: read('test') };
}

/** Secrets, keys and tables. @returns the settings of the processes */
async function prepare(
  database: Server,
  { paths, authorities }: Pick<Disks, 'paths'> & { authorities: readonly Authority[] },
  hooks: ShutdownHooks,
): Promise<Record<string, string>> {
  const pool = connectPool({ url: database.url(), name: 'chaos', max: 1, statementTimeoutMs: 60_000 });
  await migrate(pool).finally(() => pool.end());
  const register = join(paths.register, 'register');
  mkdirSync(register, { mode: 0o700 });
  const { env } = await makeInstallation(
    { teardown: (stop: () => Promise<unknown>) => hooks.add(stop) },
    {
      servers: { databaseUrl: database.url(), natsUrl: '' },
      env: {
        ...SETTINGS,
        CHECKPOINT_REGISTER: register,
        WITNESSES: JSON.stringify(authorities.map(({ setting }) => setting)),
      },
    },
  );
  return env;
}

async function makeOwners(database: Server): Promise<Owner[]> {
  const pool = connectPool({ url: database.url(), name: 'chaos', max: 1, statementTimeoutMs: 60_000 });
  try {
    const owners: Owner[] = [];
    for (const { name, environment, number } of OWNERS)
      owners.push({ name, environment, apiKey: await makeUnlimitedKey(pool, number) });
    return owners;
  } finally {
    await pool.end();
  }
}
