/** `attest doctor`: whether an installation can work. No check changes what the service stores. */
import type { Config, UpConfig } from '../../../config/config.js';
import { withShutdownHooks } from '../../core/shutdown.js';
import { connectPool } from '../../database/connect.js';
import { findConnections, readStarted } from '../up.js';
import { serverChecks, tableChecks } from './database-checks.js';
import { type Check, type Finding, runCheck } from './finding.js';
import { keyChecks, logChecks } from './log-checks.js';
import { machineChecks } from './machine-checks.js';
import { serviceChecks } from './service-checks.js';

const STATEMENT_TIMEOUT_MS = 10_000;
/** Of a check; signing processes and witnesses have shorter ones of their own. */
const TIMEOUT_MS = 30_000;

/** What to check: the settings of a process, or of the `attest up` that runs. */
type Examined = { readonly config: Config; readonly isOfUp: boolean };

/** The configuration of the `attest up` over this data directory; undefined if there was none. */
export async function findStarted(config: UpConfig): Promise<Config | undefined> {
  return (await findConnections(config.dataDir)) === undefined ? undefined : readStarted(config);
}

/** Runs all checks, and calls `onFinding` with each finding in order. Checks of tables are left out until there are any. */
export async function runDoctor(
  { config, isOfUp }: Examined,
  onFinding: (finding: Finding) => void,
): Promise<void> {
  await withShutdownHooks(async (hooks) => {
    const pool = connectPool({
      url: config.databaseUrl,
      name: 'doctor',
      max: 2,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    });
    hooks.add(() => pool.end({ timeout: 5 }));
    const database = { pool, config, statementTimeoutMs: STATEMENT_TIMEOUT_MS };
    const run = async (checks: readonly Check[]): Promise<boolean> => {
      // Side by side, because each may wait for a service that does not answer; printed in their order.
      const running = checks.map((check) => runCheck(check, AbortSignal.timeout(TIMEOUT_MS)));
      let isOk = true;
      for (const findings of running) {
        for (const finding of await findings) {
          isOk &&= finding.status !== 'failed';
          onFinding(finding);
        }
      }
      return isOk;
    };
    await run(machineChecks(config, new Date()));
    const isReady = await run(serverChecks(database));
    await run(serviceChecks(config, { isOfUp }));
    if (!isReady) return;
    await run([...tableChecks(database), ...keyChecks(pool, config, hooks), ...logChecks(pool, config)]);
  });
}
