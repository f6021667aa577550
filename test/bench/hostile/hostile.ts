import { readdir } from 'node:fs/promises';
import { get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { withShutdownHooks } from '../../../src/server/core/shutdown.js';
import type { Pool } from '../../../src/server/database/connect.js';
import { openSecrets } from '../../../src/server/embedded/secrets.js';
import { makeKey } from '../../../src/server/process/first-keys.js';
import { findFreePort } from '../../support/servers/free-port.js';
import { postgresCpuMs } from '../cpu/postgres-cpu.js';
import type { Options } from '../options.js';
import { ATTEST, cpuMs, peakMib, residentMib, startNode, startPeak } from '../process.js';
import { openPool, readyUrl, type Services } from '../services.js';
import type { Attack, Target } from './attack.js';

/** What an attack cost the service. */
export type HostileRow = {
  name: string;
  bytes: number;
  /** Processor time of the API process and of all Postgres, in milliseconds, until both had come to rest. */
  apiCpuMs: number;
  postgresCpuMs: number;
  /** Of both together for each byte, in microseconds. */
  cpuMicrosPerByte: number;
  /** How far the API process grew above what it had before, and the most it had. */
  grownMib: number;
  peakMib: number;
  /** The longest that `/livez` took to answer meanwhile, or has not answered at the end. */
  livezMs: number;
  /** Why the attack ended early. */
  failure?: string;
};

const POLL_MS = 100;
/** An attack has passed when the processes used less than a tenth of a processor for this long. */
const REST_MS = 1_000;
const REST_SHARE = 0.1;
const GIVE_UP_MS = 180_000;
const WARM_UP_REQUESTS = 300;

/** Runs each attack against an API process of its own. */
export async function measureHostile(services: Services, options: Options): Promise<HostileRow[]> {
  const attacks = (await loadAttacks()).filter(
    ({ name }) => options.attack === undefined || name.includes(options.attack),
  );
  const rows: HostileRow[] = [];
  for (const attack of attacks) rows.push(await measureAttack(services, options, attack));
  return rows;
}

async function loadAttacks(): Promise<Attack[]> {
  const folder = new URL('./attacks/', import.meta.url);
  const names = (await readdir(folder)).filter((name) => name.endsWith('.js')).sort();
  const modules = await Promise.all(names.map((name) => import(new URL(name, folder).href)));
  return modules.flatMap(({ attacks }) => attacks as Attack[]);
}

async function measureAttack(services: Services, options: Options, attack: Attack): Promise<HostileRow> {
  return withShutdownHooks(async (hooks) => {
    const pool = openPool(services.databaseUrl, hooks);
    const opsPort = await findFreePort();
    const env = { ...services.env, OPS_PORT: String(opsPort), OPS_HOST: '127.0.0.1' };
    const api = await startNode([options.program ?? ATTEST, 'api'], { env });
    hooks.add(api.stop);
    const baseUrl = readyUrl(api);
    const target = {
      services,
      baseUrl,
      port: Number(new URL(baseUrl).port),
      opsPort,
      rows: options.rows,
      makeKey: () => makeLimitedKey(services, pool),
      hooks,
    };
    await warmUp(target);
    const databaseCpuMs = () => postgresCpuMs(pool);
    const cpu = async () => ({ api: cpuMs(api.pid) ?? 0, postgres: await databaseCpuMs() });
    const before = await cpu();
    const residentBefore = residentMib(api.pid) ?? 0;
    startPeak(api.pid);
    const livez = pollLivez(opsPort);
    const { bytes, failure } = await runAttack(attack, target);
    const after = await untilAtRest(cpu);
    const peak = peakMib(api.pid) ?? 0;
    const apiCpuMs = after.api - before.api;
    const postgresMs = after.postgres - before.postgres;
    return {
      name: attack.name,
      bytes,
      apiCpuMs,
      postgresCpuMs: postgresMs,
      cpuMicrosPerByte: ((apiCpuMs + postgresMs) * 1_000) / bytes,
      grownMib: peak - residentBefore,
      peakMib: peak,
      livezMs: livez.stop(),
      ...(failure === undefined ? {} : { failure }),
    };
  });
}

async function runAttack({ run }: Attack, target: Target): Promise<{ bytes: number; failure?: string }> {
  const late = delay(
    GIVE_UP_MS,
    { bytes: Number.NaN, failure: 'not over after three minutes' },
    { ref: false },
  );
  return Promise.race([run(target).then((bytes) => ({ bytes })), late]);
}

/** A process that has just started still compiles what it runs. */
async function warmUp({ baseUrl, services }: Target): Promise<void> {
  const headers = { authorization: `Bearer ${services.apiKey}` };
  for (let i = 0; i < WARM_UP_REQUESTS; i++) {
    for (const path of ['/v1/service/health', '/v1/attestations?limit=2', '/v1/nothing']) {
      await (await fetch(baseUrl + path, { headers })).arrayBuffer();
    }
  }
}

async function makeLimitedKey({ dir, projectId }: Services, pool: Pool): Promise<string> {
  const { secretKeys } = await openSecrets(dir);
  const environment = Environment.LIVE;
  const wanted = {
    environment,
    projectId,
    name: 'attacker',
    scopes: undefined,
    expiresAt: undefined,
  } as const;
  return (await makeKey(pool, secretKeys, wanted)).key;
}

type Cpu = { api: number; postgres: number };

/** What was used when both processes had been at rest for a while; that while is not counted. */
async function untilAtRest(read: () => Promise<Cpu>): Promise<Cpu> {
  const startedMs = performance.now();
  for (let last = await read(); ; ) {
    await delay(REST_MS);
    const now = await read();
    const usedMs = now.api + now.postgres - last.api - last.postgres;
    if (usedMs < REST_MS * REST_SHARE || performance.now() - startedMs > GIVE_UP_MS) return last;
    last = now;
  }
}

/** Asks for `/livez` over and over. */
function pollLivez(port: number): { stop: () => number } {
  let longestMs = 0;
  let askedMs = performance.now();
  let isWaiting = false;
  const ask = () => {
    if (isWaiting) return;
    isWaiting = true;
    askedMs = performance.now();
    const done = () => {
      isWaiting = false;
      longestMs = Math.max(longestMs, performance.now() - askedMs);
    };
    get({ port, host: '127.0.0.1', path: '/livez', agent: false }, (answer) =>
      answer.resume().once('end', done),
    ).once('error', done);
  };
  const timer = setInterval(ask, POLL_MS);
  return {
    stop: () => {
      clearInterval(timer);
      return isWaiting ? Math.max(longestMs, performance.now() - askedMs) : longestMs;
    },
  };
}
