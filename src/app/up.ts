import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { ulid } from 'ulid';
import { WitnessKind } from '../../gen/attestation/v1/bundle_pb.js';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { createApiKey } from '../api-key.js';
import { type Config, publicUrls, type UpConfig } from '../config.js';
import { type DataDir, lockDataDir } from '../embedded/data-dir.js';
import { startNats } from '../embedded/nats.js';
import { startPostgres } from '../embedded/postgres.js';
import { openSecrets } from '../embedded/secrets.js';
import { openTimestampAuthority } from '../embedded/timestamp-authority.js';
import { writeFileAtomic } from '../embedded/write-file-atomic.js';
import type { Logger } from '../logger.js';
import { deriveKeyRing, hmacApiKey } from '../secret-key.js';
import { insertApiKey, insertProject } from '../store/api-keys.js';
import type { Pool } from '../store/connect.js';
import { rfc3161Witness } from '../witness/rfc3161.js';
import type { WitnessSetup } from './setup.js';

/** The name of the embedded time-stamping authority among the witnesses. */
export const EMBEDDED_WITNESS = 'self-tsa';

/** What scripts find in `<data dir>/credentials.json`. */
export type Credentials = {
  base_url: string;
  verify_url: string;
  ops_url: string;
  project_id: string;
  live_key: string;
  test_key: string;
  admin_token: string;
};

/** The servers, secrets and witness that `attest up` provides for itself. Stop in reverse order of starting. */
export type Embedded = { config: Config; witnesses: WitnessSetup[]; dataDir: DataDir; stop(): Promise<void> };

/** Locks the data directory, starts what no setting names, and makes missing secrets. */
export async function startEmbedded(config: UpConfig, log: Logger): Promise<Embedded> {
  const dataDir = await lockDataDir({ path: config.dataDir });
  const stops: (() => Promise<void>)[] = [() => dataDir.release()];
  const stop = async () => {
    for (const each of stops.splice(0).reverse()) await each();
  };
  try {
    const secrets = await openSecrets(dataDir.path, config.secrets);
    const postgres = config.databaseUrl === undefined ? await startPostgres({ dataDir, log }) : undefined;
    if (postgres) stops.push(() => postgres.stop());
    const nats = config.natsUrl === undefined ? await startNats({ dataDir, log }) : undefined;
    if (nats) stops.push(() => nats.stop());
    const databaseUrl = config.databaseUrl ?? postgres?.url ?? '';
    const natsUrl = config.natsUrl ?? nats?.url ?? '';
    const witnesses = [await embeddedWitness(dataDir)];
    return { config: { ...config, databaseUrl, natsUrl, secrets }, witnesses, dataDir, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The authority that runs in this process: the operator's own clock, and said to be so. */
async function embeddedWitness(dataDir: DataDir): Promise<WitnessSetup> {
  const dir = join(dataDir.path, 'timestamp-authority');
  const authority = await openTimestampAuthority({ dir, clock: () => new Date(), randomBytes });
  const { certChain, certChainPem, policyOid } = authority;
  const trust = { name: EMBEDDED_WITNESS, chains: [certChain], policyOid };
  return {
    witness: rfc3161Witness({ send: authority.respond, randomBytes }, trust),
    kind: WitnessKind.RFC3161,
    environments: [Environment.LIVE, Environment.TEST],
    required: true,
    everyMs: 0,
    authority: { url: '', operator: 'self', certChainPem },
  };
}

/** Every scope there is: what the first keys may do. */
const SCOPES = [
  'attestations:read',
  'attestations:write',
  'batches:read',
  'webhooks:read',
  'webhooks:write',
  'exports:read',
  'exports:write',
];

/**
 * Makes the first project with one live and one test key, once, and writes `credentials.json` anew with the addresses
 * of this start.
 */
export async function writeCredentials(
  pool: Pool,
  config: Config,
  ports: { api: number; ops: number },
  previous: Credentials | undefined,
): Promise<Credentials> {
  const made = previous ?? (await makeFirstProject(pool, config));
  const { baseUrl, verifyUrl } = publicUrls(config, ports.api);
  const credentials = {
    base_url: baseUrl,
    verify_url: verifyUrl,
    ops_url: `http://localhost:${ports.ops}`,
    project_id: made.project_id,
    live_key: made.live_key,
    test_key: made.test_key,
    admin_token: config.secrets.adminToken,
  };
  await writeFileAtomic(
    join(config.dataDir, 'credentials.json'),
    `${JSON.stringify(credentials, null, 2)}\n`,
  );
  return credentials;
}

async function makeFirstProject(pool: Pool, config: Config) {
  const project_id = `prj_${ulid()}`;
  const live_key = createApiKey(Environment.LIVE, randomBytes);
  const test_key = createApiKey(Environment.TEST, randomBytes);
  await pool.begin(async (tx) => {
    await insertProject(tx, { id: project_id, name: 'first project' });
    for (const [key, environment] of [
      [live_key, Environment.LIVE],
      [test_key, Environment.TEST],
    ] as const) {
      const hmac = hmacApiKey(deriveKeyRing(config.secrets.secretKeys, 'api-key'), key)[0];
      const [prefix, last4] = [key.slice(0, 9), key.slice(-4)];
      await insertApiKey(tx, {
        id: `key_${ulid()}`,
        projectId: project_id,
        environment,
        name: 'first key',
        prefix,
        last4,
        hmac,
        scopes: SCOPES,
        expiresAt: null,
      });
    }
  });
  return { project_id, live_key, test_key };
}
