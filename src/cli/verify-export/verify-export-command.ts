/** `attest verify --export`: reads trust roots, verifies a file or a directory with a progress bar, and prints. */
import { stat } from 'node:fs/promises';
import type { WitnessDemands } from '../../proof/verify/steps/policy-step.js';
import type { EnvironmentName } from '../../protocol/environment.js';
import { printable } from '../../protocol/printable.js';
import { type Cli, print, UsageError } from '../cli.js';
import { openEvmRpcs } from '../flags/evm-flags.js';
import type { SettingFlags } from '../flags/setting-flags.js';
import { type BitcoinFlags, readBitcoinHeaders } from '../input/bitcoin-headers.js';
import { errnoReason } from '../input/input-file.js';
import { getTrustRoots, readTrusted } from '../input/trust-roots.js';
import { EXIT_CODES } from '../output/exit-codes.js';
import { openProgress } from '../output/progress.js';
import { exportJson, formatExport } from './export-text.js';
import { sizeOfAll } from './find-files.js';
import { type Tally, verdictOf } from './tally.js';
import { verifyExportDirectory, verifyExportFile } from './verify-export.js';

type Flags = SettingFlags &
  BitcoinFlags &
  WitnessDemands & {
    readonly trustRoots?: string;
    readonly environment?: EnvironmentName;
    readonly project?: string;
    readonly issuer?: string;
    readonly identity?: string;
    readonly evmRpc?: readonly string[];
    readonly json?: boolean;
  };

/** Verifies exported objects, prints the report, and sets the exit code. Throws UsageError if there is nothing to verify. */
export async function verifyExport(cli: Cli, path: string, flags: Flags): Promise<void> {
  const found = await stat(path).catch((error: Error) => {
    throw new UsageError(`${path} cannot be read: ${errnoReason(error)}`);
  });
  const trustRoots = await getTrustRoots(cli.env, flags);
  const trust = readTrusted(trustRoots.document);
  const { environment = 'live', project, issuer, identity, minWitnesses, requireWitnesses } = flags;
  const now = cli.now();
  const bitcoinHeaders = await readBitcoinHeaders(flags);
  const total = found.isDirectory() ? await sizeOfAll(path) : found.size;
  const progress = openProgress({ output: cli.stderr, now: () => cli.now().getTime() }, 'verifying', total);
  const options = {
    lines: {
      trustRoots: trustRoots.document,
      environment,
      project,
      issuer,
      identity,
      minWitnesses,
      requireWitnesses,
      bitcoinHeaders,
      ...openEvmRpcs(cli.env, flags.evmRpc),
      now,
    },
    manifests: { trust, environment, project, now },
    onBytes: progress.add,
  };
  const verify = found.isDirectory() ? verifyExportDirectory : verifyExportFile;
  const tally = await verify(path, options).finally(progress.clear);
  printTally(cli, tally, trustRoots.origin, flags);
}

function printTally(cli: Cli, tally: Tally, origin: string, { json }: Flags): void {
  cli.exitCode = EXIT_CODES[verdictOf(tally)];
  if (json) print(cli, JSON.stringify(exportJson(tally, origin)));
  else for (const line of formatExport(tally, origin)) print(cli, printable(line));
}
