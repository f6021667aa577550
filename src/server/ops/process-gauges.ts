import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Config } from '../../config/config.js';
import { environmentName } from '../../protocol/environment.js';
import { type Pool, readPoolUse } from '../database/connect.js';
import { listDsseKeys } from '../log/store/dsse-keys.js';
import type { WitnessSetup } from '../witnessing/set-up-witnesses.js';
import { addBuildInfo } from './build-info.js';
import type { GaugeValue, Metrics } from './metrics.js';

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Adds the metrics of every process of the service: version, connection pools and certificate expiry. */
export function addProcessGauges(
  metrics: Metrics,
  config: Pick<Config, 'tls'>,
  witnesses: readonly WitnessSetup[],
): void {
  addBuildInfo(metrics);
  const pools = (of: 'inUse' | 'waiting') => () =>
    readPoolUse().map((use) => ({ labels: { pool: use.pool }, value: use[of] }));
  metrics.addGauge({
    name: 'attest_pool_connections_in_use',
    help: 'Connections to Postgres that are at work',
    labelNames: ['pool'],
    read: pools('inUse'),
  });
  metrics.addGauge({
    name: 'attest_pool_waiting',
    help: 'Statements and transactions that wait for a connection to Postgres',
    labelNames: ['pool'],
    read: pools('waiting'),
  });
  metrics.addGauge({
    name: 'attest_certificate_expiry_timestamp_seconds',
    help: 'When the first certificate expires of the chain that is served, or of those that a witness is held to',
    labelNames: ['certificate'],
    merge: 'min',
    read: () => readExpiries(config, witnesses),
  });
}

async function readExpiries(
  { tls }: Pick<Config, 'tls'>,
  witnesses: readonly WitnessSetup[],
): Promise<GaugeValue> {
  const chains = witnesses.map(({ witness, authority }): [string, string[]] => [
    `witness ${witness.name}`,
    authority?.certChainsPem.flat() ?? [],
  ]);
  if (tls !== undefined)
    chains.push(['tls', (await readFile(tls.certFile, 'utf8')).match(CERTIFICATE) ?? []]);
  return chains
    .filter(([, chain]) => chain.length > 0)
    .map(([certificate, chain]) => ({
      labels: { certificate },
      value: Math.min(...chain.map(expirySeconds)),
    }));
}

function expirySeconds(pem: string): number {
  return Date.parse(new X509Certificate(pem).validTo) / 1000;
}

/** Adds the metrics of an API process: queued submissions and key expiry. */
export function addApiGauges(metrics: Metrics, pool: Pool, queuedRows: () => number): void {
  metrics.addGauge({
    name: 'attest_accept_queued_submissions',
    help: 'Submissions that wait for the write under way to end',
    read: queuedRows,
  });
  metrics.addGauge({
    name: 'attest_dsse_key_expiry_timestamp_seconds',
    help: 'When a key that signs statements, and was replaced, expires',
    labelNames: ['environment', 'key'],
    merge: 'first',
    read: async () =>
      (await listDsseKeys(pool)).flatMap(({ id, environment, validTo }) => {
        const labels = { environment: environmentName(environment), key: String(id) };
        return validTo === null ? [] : [{ labels, value: validTo.getTime() / 1000 }];
      }),
  });
}

/** Adds whether the synchronous standby of the database is away; `reason` says why. */
export function addStandbyGauge(metrics: Metrics, reason: () => string | undefined): void {
  metrics.addGauge({
    name: 'attest_database_standby_away',
    help: '1 while the synchronous standby of the database does not answer: nothing is stored, reads are served',
    merge: 'max',
    read: () => (reason() === undefined ? 0 : 1),
  });
}

/** Adds whether an API process reads from the standby; `reason` as of a read replica. */
export function addPrimaryGauge(metrics: Metrics, reason: () => string | undefined): void {
  metrics.addGauge({
    name: 'attest_database_primary_away',
    help: '1 while no primary of the database responds and reads come from DATABASE_READ_URL',
    merge: 'max',
    read: () => (reason() === undefined ? 0 : 1),
  });
}

/**
 * Adds the metrics of a process that runs API processes: how many are ready, and how many died.
 *
 * @returns counts one that died
 */
export function addApiProcessGauges(metrics: Metrics, countReady: () => number): () => void {
  metrics.addGauge({
    name: 'attest_api_processes_ready',
    help: 'API processes that share the port and answer',
    read: countReady,
  });
  const died = metrics.addCounter(
    'attest_api_processes_died_total',
    'API processes that ended by themselves and were started again',
  );
  return () => died.add(1);
}
