import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import type { Test } from 'tap';
import { type Config, readConfig } from '../../src/config/config.js';
import { createLogger, type Logger } from '../../src/server/core/logger.js';
import { createShutdownHooks, type ShutdownHooks } from '../../src/server/core/shutdown.js';
import { connectPool, type Pool } from '../../src/server/database/connect.js';
import { openSecrets } from '../../src/server/embedded/secrets.js';
import { type Check, isReady } from '../../src/server/ops/ops-listener.js';
import { startApi } from '../../src/server/process/api/api.js';
import { openStampWitnesses, openWitnesses } from '../../src/server/process/open-witnesses.js';
import { openStandby, type Standby } from '../../src/server/process/standby.js';
import { startWorker, type Worker } from '../../src/server/process/worker/worker.js';
import { openRegister } from '../../src/server/witnessing/register/open-register.js';
import type { WitnessSetup } from '../../src/server/witnessing/set-up-witnesses.js';
import { startProxy, type TcpProxy } from './breaking/proxy.js';
import { type RestAnswer, type RestOptions, rest, type Surface, surfacesOf } from './calling/rpc-clients.js';
import { createRecorder, type Recorder } from './judging/recorder.js';
import { drainWorker, holdSealing } from './servers/drain-worker.js';
import { testNatsPrefix, testNatsUrl } from './servers/shared-nats.js';
import { testDatabase } from './servers/shared-servers.js';
import { type ControlledWitness, makeControlledWitnesses } from './witnesses/controlled-witness.js';

/** The address that events of the worker speak of. */
const EVENT_BASE_URL = 'https://api.example.com';

export type AppOptions = {
  /** How many API processes' worth. */
  apis?: number;
  /** Names of the witnesses beside those of WITNESSES, all required; one by default. */
  witnesses?: readonly string[];
  witnessDeadlineMs?: number;
  /** Further settings; the witnesses of WITNESSES are asked beside those that the test controls. */
  env?: Record<string, string>;
  /** Whether the service reaches its database through `databaseProxy`. */
  isProxied?: boolean;
  /** Another database than one of the run's Postgres, migrated. */
  databaseUrl?: string;
  /** Another nats-server than the run's. */
  natsUrl?: string;
  /** Whether the service is without a worker, such as for `consumeJobs`; nothing can be drained then. */
  isWithoutWorker?: boolean;
  /** Whether the service is without an admin token. */
  isWithoutAdmin?: boolean;
};

/** The running service and what a test does with it. */
export type App = {
  config: Config;
  baseUrl: string;
  /** Of every API, the first being `baseUrl`. */
  baseUrls: string[];
  verifyUrl: string;
  pool: Pool;
  queuePrefix: string;
  register: string;
  witnesses: ControlledWitness[];
  recorder: Recorder;
  /** Between the service and its database, when asked for; the test's own pool goes past it. */
  databaseProxy: TcpProxy | undefined;
  /** One REST request of the first API. */
  rest(path: string, options?: RestOptions): Promise<RestAnswer>;
  /** REST, Connect and gRPC on the first API, or another. */
  surfaces(baseUrl?: string): Surface[];
  /** Runs what the tables say is due until nothing is, and no witness is being asked. */
  drain(): Promise<void>;
  /**
   * Starts the worker anew with these witnesses in place of `witnesses`; a name has the keys that it had, or those of
   * another one.
   */
  changeWitnesses(names: readonly string[], keysOf?: Record<string, string>): Promise<void>;
  /** Keeps every log from being sealed until the function it returns is called. */
  holdSealing(): Promise<() => Promise<void>>;
};

/** Starts it until the test ends. */
export async function startApp(t: Test, options: AppOptions = {}): Promise<App> {
  const natsUrl = options.natsUrl ?? (await testNatsUrl());
  const databaseUrl = options.databaseUrl ?? (await testDatabase(t));
  const queuePrefix = testNatsPrefix(t);
  const dir = await mkdtemp(join(tmpdir(), 'attest-app-'));
  const hooks = createShutdownHooks();
  t.teardown(async () => {
    await hooks.run();
    await rm(dir, { recursive: true });
  });
  const { proxy, url } = await proxied(databaseUrl, options.isProxied === true, hooks);
  const made = await makeConfig(dir, { databaseUrl: url, natsUrl }, options.env ?? {});
  const config = options.isWithoutAdmin ? withoutAdmin(made) : made;
  const recorder = createRecorder();
  const log = createLogger({ level: 'trace', destination: lineStream(recorder) });
  const register = await openRegister(config.checkpointRegister);
  const standby = openStandby({ databaseUrl: config.databaseUrl, log }, hooks);
  const shared = { ...standby, config, queuePrefix, register, log };
  const startWitnessed = async (wanted: readonly string[], keysOf: Record<string, string> = {}) => {
    const { names, setups } = await makeControlledWitnesses(dir, wanted, keysOf);
    const own = createShutdownHooks();
    hooks.add(own.run);
    const configured = openWitnesses(config.witnesses);
    const worker = await startTestWorker(shared, [...setups, ...configured], options, own);
    own.add(async () => {
      for (const witness of names) witness.release();
    });
    return { names, worker, stop: own.run };
  };
  let running = options.isWithoutWorker ? undefined : await startWitnessed(options.witnesses ?? ['self-tsa']);
  const baseUrls: string[] = [];
  for (let i = 0; i < (options.apis ?? 1); i++) baseUrls.push(await listen(shared, hooks));
  const [baseUrl = ''] = baseUrls;
  const pool = connectPool({ url: databaseUrl, name: 'test', max: 4, statementTimeoutMs: 60_000 });
  hooks.add(() => pool.end({ timeout: 1 }));
  const app: App = {
    config,
    baseUrl,
    baseUrls,
    verifyUrl: `${baseUrl}/verify`,
    pool,
    queuePrefix,
    register: folderOf(config),
    witnesses: running?.names ?? [],
    recorder,
    databaseProxy: proxy,
    rest: (path, request) => rest(baseUrl, recorder, path, request),
    surfaces: (of = baseUrl) => {
      const surfaces = surfacesOf(of, recorder);
      for (const { close } of surfaces) hooks.add(async () => close());
      return surfaces;
    },
    drain: async () => {
      if (running === undefined) throw new Error('the app has no worker');
      await drainWorker(running.worker);
    },
    changeWitnesses: async (names, keysOf) => {
      await running?.stop();
      running = await startWitnessed(names, keysOf);
      app.witnesses = running.names;
    },
    holdSealing: () => holdSealing(pool),
  };
  return app;
}

/** The register's folder. */
function folderOf({ checkpointRegister }: Config): string {
  if (typeof checkpointRegister !== 'string') throw new Error('the register of this app is no folder');
  return checkpointRegister;
}

type Shared = Standby & {
  config: Config;
  queuePrefix: string;
  register: Awaited<ReturnType<typeof openRegister>>;
  log: Logger;
};

async function proxied(
  databaseUrl: string,
  isWanted: boolean,
  hooks: ShutdownHooks,
): Promise<{ proxy: TcpProxy | undefined; url: string }> {
  if (!isWanted) return { proxy: undefined, url: databaseUrl };
  const url = new URL(databaseUrl);
  const proxy = await startProxy({ host: url.hostname, port: Number(url.port) });
  hooks.add(proxy.close);
  url.host = `127.0.0.1:${proxy.port}`;
  return { proxy, url: url.href };
}

async function makeConfig(
  dir: string,
  servers: { databaseUrl: string; natsUrl: string },
  env: Record<string, string>,
): Promise<Config> {
  const settings = {
    DATA_DIR: dir,
    HOST: '127.0.0.1',
    PORT: '0',
    LOG_DOMAIN: 'log.example.com',
    BATCH_INTERVAL: '10ms',
    LOG_LEVEL: 'trace',
    ...env,
  };
  const config = readConfig(settings, { process: 'up' });
  return { ...config, ...servers, secrets: await openSecrets(dir, config.secrets) };
}

function withoutAdmin(config: Config): Config {
  return { ...config, secrets: { ...config.secrets, adminToken: undefined } };
}

async function listen(
  { config, queuePrefix, register, log, ...standby }: Shared,
  hooks: ShutdownHooks,
): Promise<string> {
  let baseUrl = '';
  const checks: Check[] = [];
  const options = {
    ...standby,
    config,
    stampWitnesses: openStampWitnesses(config.witnesses),
    queuePrefix,
    register,
    log,
    baseUrl: () => baseUrl,
    verifyUrl: () => `${baseUrl}/verify`,
    isReady: () => isReady(checks),
    observe: () => {},
  };
  const api = await startApi(options, hooks);
  checks.push(...api.checks);
  const { port } = await api.server.listen({ host: config.host, port: 0 });
  baseUrl = `http://localhost:${port}`;
  return baseUrl;
}

function startTestWorker(
  { config, queuePrefix, register, log, ...standby }: Shared,
  witnesses: readonly WitnessSetup[],
  { witnessDeadlineMs = config.witnessDeadlineMs }: AppOptions,
  hooks: ShutdownHooks,
): Promise<Worker> {
  const options = {
    ...standby,
    config: { ...config, witnessDeadlineMs },
    stampWitnesses: openStampWitnesses(config.witnesses),
    baseUrl: () => EVENT_BASE_URL,
    verifyUrl: () => `${EVENT_BASE_URL}/verify`,
    queuePrefix,
    register,
    witnesses,
    log,
    observeAlarm: () => {},
    observeSettled: () => {},
    observeAttempts: () => {},
    observeShipments: () => {},
  };
  return startWorker(options, hooks);
}

function lineStream(recorder: Recorder): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      recorder.logged(chunk.toString());
      done();
    },
  });
}
