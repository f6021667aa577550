import type { Commands } from './cli.js';

/**
 * The commands that run the service or open its database. The package `@attestation-service/cli` has an empty map in the place
 * of this one, and so nothing of the server.
 */
export const SERVER_COMMANDS: Commands = new Map([
  ['up', async () => (await import('./commands/server/up.js')).addUp],
  ['api', async () => (await import('./commands/server/api.js')).addApi],
  ['worker', async () => (await import('./commands/server/worker.js')).addWorker],
  ['witness', async () => (await import('./commands/server/witness.js')).addWitness],
  ['signer', async () => (await import('./commands/server/signer.js')).addSigner],
  ['migrate', async () => (await import('./commands/server/migrate.js')).addMigrate],
  ['doctor', async () => (await import('./commands/server/doctor.js')).addDoctor],
  ['backup', async () => (await import('./commands/admin/backup.js')).addBackup],
  ['log', async () => (await import('./commands/admin/log.js')).addLog],
  ['dsse-keys', async () => (await import('./commands/admin/dsse-keys.js')).addDsseKeys],
  ['secret-keys', async () => (await import('./commands/admin/secret-keys.js')).addSecretKeys],
]);
