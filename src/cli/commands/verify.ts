import type { Command } from 'commander';
import { MAX_BUNDLE_CHARACTERS } from '../../proof/verify/read-bundle.js';
import { type Verification, verifyBundle } from '../../proof/verify/verify.js';
import type { EnvironmentName } from '../../protocol/environment.js';
import { type Cli, print, printable, UsageError } from '../cli.js';
import { environmentFlag, readJsonFlag } from '../flags/client-flags.js';
import { artifactSha256 } from '../input/artifact.js';
import { readInputFile } from '../input/input-file.js';
import { getTrustRoots } from '../input/trust-roots.js';
import { runCheck } from '../output/report-error.js';
import { formatVerification, verificationJson } from '../output/verification-text.js';

type Flags = {
  bundle: string;
  trustRoots?: string;
  verifyUrl?: string;
  dataDir?: string;
  environment?: EnvironmentName;
  project?: string;
  metadata?: string;
  metadataSalt?: string;
  json?: boolean;
};

const PROJECT_ID = /^prj_[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const PROJECT_ID_FORM = 'prj_ and 26 digits and capital letters';

/** Exit code of each verdict. */
export const EXIT_CODES = { verified: 0, not_verified: 1, could_not_check: 2 } as const;

const HELP = `
Checks, here and with nobody's help, that the file is the one the bundle is about, that the bundle's statement about it
is in the log, and that witnesses vouched for the log. Says what it found in each step and, in one sentence, what is
proven.

Every project of a service can attest any file. --project says which one must have: take its id from whom you expect the
attestation of. Without it the project is named in the sentence, and is for you to look at.

What to trust is never taken from the bundle. It comes from --trust-roots; without it, from trust_roots.json under
--verify-url, ATTEST_VERIFY_URL, ATTEST_URL, or the address that attest up left in its data directory. Whoever answers
there then decides what counts as proof: keep a copy of trust roots that you got another way, and use that.

Exit codes: 0 verified, 1 not verified, 2 could not check

Examples:
  $ attest verify model.bin --bundle model.bin.bundle --trust-roots trust_roots.json \\
      --project prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T
  $ attest verify sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 --bundle b.json --json
  $ attest verify report.json --bundle b.json --metadata @metadata.json --metadata-salt 5f4e...`;

/** `attest verify`. */
export function addVerify(program: Command, cli: Cli): void {
  program
    .command('verify')
    .description('check a file against its proof bundle')
    .argument('<file>', 'the file, or sha256: and 64 hex digits')
    .requiredOption('--bundle <file>', 'the proof bundle')
    .option('--trust-roots <file>', 'whom to trust: a copy of trust_roots.json')
    .option('--verify-url <url>', 'where to fetch trust roots when there is no copy (ATTEST_VERIFY_URL)')
    .option('--data-dir <dir>', 'the data directory of `attest up` (DATA_DIR, .data)')
    .addOption(environmentFlag('which environment the bundle must be of').default('live'))
    .option('--project <id>', 'the project that must have attested the file, prj_...')
    .option('--metadata <json>', 'metadata the bundle must be about, as JSON or @ and a file with it')
    .option('--metadata-salt <hex>', 'the salt that opens the commitment to the metadata')
    .option('--json', 'print the findings as JSON')
    .addHelpText('after', HELP)
    .action((file: string, flags: Flags) => runCheck(cli, flags, () => verify(cli, file, flags)));
}

async function verify(cli: Cli, file: string, flags: Flags): Promise<void> {
  const { metadata, metadataSalt, project } = flags;
  if (project !== undefined && !PROJECT_ID.test(project)) {
    throw new UsageError(`--project is not the id of a project, ${PROJECT_ID_FORM}`);
  }
  if ((metadata === undefined) !== (metadataSalt === undefined)) {
    throw new UsageError('--metadata and --metadata-salt must be given together');
  }
  const bundle = await readInputFile(flags.bundle, 'a bundle', MAX_BUNDLE_CHARACTERS);
  const trustRoots = await getTrustRoots(cli.env, flags);
  const verification = await verifyBundle(bundle, {
    artifactSha256: await artifactSha256(cli, file),
    ...(metadata !== undefined && { metadata: await readJsonFlag('--metadata', metadata), metadataSalt }),
    environment: flags.environment ?? 'live',
    ...(project !== undefined && { project }),
    trustRoots: trustRoots.document,
    now: cli.now(),
  });
  printVerification(cli, verification, trustRoots.origin, flags);
}

function printVerification(cli: Cli, verification: Verification, origin: string, { json }: Flags): void {
  cli.exitCode = EXIT_CODES[verification.verdict];
  if (json) print(cli, JSON.stringify(verificationJson(verification, origin)));
  else for (const line of formatVerification(verification, origin)) print(cli, printable(line));
}
