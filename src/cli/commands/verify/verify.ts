import type { Command } from 'commander';
import type { SetAsked } from '../../../proof/verify/steps/set-step.js';
import { type Verification, verifyBundle } from '../../../proof/verify/verify.js';
import type { EnvironmentName } from '../../../protocol/environment.js';
import { PROJECT_ID } from '../../../protocol/ids.js';
import { printable } from '../../../protocol/printable.js';
import { type Cli, print, UsageError } from '../../cli.js';
import { environmentFlag, readJsonFlag } from '../../flags/client-flags.js';
import { evmRpcFlag, openEvmRpcs } from '../../flags/evm-flags.js';
import { parseCount } from '../../flags/flag-values.js';
import { artifactSha256 } from '../../input/artifact.js';
import { type BitcoinFlags, readBitcoinHeaders } from '../../input/bitcoin-headers.js';
import { readBundleFile } from '../../input/bundle-file.js';
import { readInputFile } from '../../input/input-file.js';
import { getTrustRoots, readTrusted } from '../../input/trust-roots.js';
import { EXIT_CODES } from '../../output/exit-codes.js';
import { runCheck } from '../../output/report-error.js';
import { formatVerification, verificationJson } from '../../output/verification-text.js';
import { addFolderFlags, type FolderFlags, isFolder } from '../../sets/folder-files.js';
import { openSet } from '../../sets/set-file.js';
import { verificationCase } from '../../verify-folder/junit-cases.js';
import { writeJUnit } from '../../verify-folder/junit-report.js';
import { rememberAnswers } from '../../verify-folder/remember-answers.js';
import { verifyFileWithBundles } from '../../verify-folder/verify-file-with-bundles.js';
import { verifyFolderWithBundles } from '../../verify-folder/verify-with-bundles.js';
import { VERIFY_HELP } from './verify-help.js';

type Flags = BitcoinFlags &
  FolderFlags & {
    bundle?: string;
    bundles?: string;
    junit?: string;
    set?: string;
    path?: string;
    extraOk?: boolean;
    export?: string;
    trustRoots?: string;
    verifyUrl?: string;
    dataDir?: string;
    environment?: EnvironmentName;
    project?: string;
    issuer?: string;
    identity?: string;
    metadata?: string;
    metadataSalt?: string;
    evmRpc?: string[];
    receipt?: string;
    minWitnesses?: string;
    requireWitness?: string[];
    json?: boolean;
  };

/** The maximum of a bundle. */
const MAX_WITNESSES = 64;
const MAX_RECEIPT_BYTES = 1024 * 1024;
const PROJECT_ID_FORM = 'prj_ and 26 digits and capital letters';

/** `attest verify`. */
export function addVerify(program: Command, cli: Cli): void {
  addFolderFlags(program.command('verify'))
    .argument('[file]', 'file, sha256: and 64 hex digits, or with --set or --bundles a folder')
    .option('--bundle <file>', 'proof bundle of the file, or of its set')
    .option('--bundles <dir>', 'folder of proof bundles, of the file or of the files of the folder')
    .option('--set <file>', 'set file that has the file, or the files of the folder')
    .option('--path <path>', 'path that the file must have in the set (default: any)')
    .option('--extra-ok', 'let files of the folder pass that are not in the set, or have no bundle')
    .option('--export <path>', 'exported object, manifest or directory, instead of a file and its bundle')
    .option('--trust-roots <file>', 'trust roots: a copy of trust_roots.json')
    .option('--verify-url <url>', 'base URL of trust_roots.json, if there is no copy (ATTEST_VERIFY_URL)')
    .option('--data-dir <dir>', 'data directory of `attest up` (DATA_DIR, default: .data)')
    .addOption(environmentFlag('required environment of the bundle').default('live'))
    .option('--project <id>', 'required project of the submission, prj_...')
    .option('--issuer <url>', 'required issuer of the identity that submitted')
    .option('--identity <pattern>', 'required subject of that identity; * stands for any characters')
    .option('--metadata <json>', 'expected metadata, as JSON or @<file>; needs --metadata-salt')
    .option('--metadata-salt <hex>', 'salt of the metadata commitment; a public statement has none')
    .option('--bitcoin-header <height:hex>', 'header of a Bitcoin block, 80 bytes; repeatable', collect)
    .option('--bitcoin-headers <file>', 'headers of Bitcoin blocks, lines of height and hex')
    .addOption(evmRpcFlag())
    .option('--min-witnesses <n>', 'how many witnesses beside the log must be verified')
    .option('--require-witness <name>', 'witness that must be verified; repeatable', collect)
    .option('--receipt <file>', 'COSE receipt of the same submission, to be verified as well')
    .option('--junit <file>', 'write a JUnit report, with a test case for each file')
    .option('--json', 'print the report as JSON')
    .addHelpText('after', VERIFY_HELP)
    .action((file: string | undefined, flags: Flags) => runCheck(cli, flags, () => run(cli, file, flags)));
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

async function run(cli: Cli, file: string | undefined, flags: Flags): Promise<void> {
  const { bundle, bundles, metadata, metadataSalt, project } = flags;
  if (project !== undefined && !PROJECT_ID.test(project)) {
    throw new UsageError(`--project is not the id of a project, ${PROJECT_ID_FORM}`);
  }
  if (flags.export !== undefined) {
    const others = [file, bundle, bundles, flags.set, metadata, metadataSalt, flags.junit];
    if (others.some((given) => given !== undefined)) {
      throw new UsageError(
        '--export goes with no file, --bundle, --bundles, --set, --metadata, --metadata-salt or --junit',
      );
    }
    const { verifyExport } = await import('../../verify-export/verify-export-command.js');
    await verifyExport(cli, flags.export, { ...flags, ...demandsOf(flags) });
    return;
  }
  if (bundle === undefined && bundles === undefined) {
    throw new UsageError(
      "required option '--bundle <file>' not specified, nor --bundles <dir>, nor --export <path>",
    );
  }
  if (file === undefined) throw new UsageError("missing required argument 'file'");
  if (bundles !== undefined) await verifyWithBundles(cli, file, { ...flags, bundles });
  else if (bundle !== undefined) await verify(cli, file, { ...flags, bundle });
}

/** The trust that the flags ask for, and where it is from. */
async function readOptions(cli: Cli, flags: Flags) {
  const { document, origin } = await getTrustRoots(cli.env, flags);
  const { environment = 'live', project, issuer, identity } = flags;
  const options = {
    environment,
    ...(project !== undefined && { project }),
    issuer,
    identity,
    ...demandsOf(flags),
    trustRoots: document,
    bitcoinHeaders: await readBitcoinHeaders(flags),
    ...openEvmRpcs(cli.env, flags.evmRpc),
    now: cli.now(),
  };
  return { options, origin };
}

async function verifyWithBundles(cli: Cli, file: string, flags: Flags & { bundles: string }): Promise<void> {
  const { bundle, set, path, metadata, metadataSalt, receipt, trustRoots, junit } = flags;
  if ([bundle, set, path, metadata, metadataSalt, receipt].some((given) => given !== undefined)) {
    throw new UsageError(
      '--bundles goes with no --bundle, --set, --path, --metadata, --metadata-salt or --receipt',
    );
  }
  const isOfFolder = isFolder(file);
  if (!isOfFolder) checkFileFlags(flags);
  const { options, origin } = await readOptions(cli, flags);
  readTrusted(options.trustRoots);
  const outputs = [trustRoots, junit].filter((output) => output !== undefined);
  const asked = { options: { ...options, ...rememberAnswers(options) }, origin, outputs };
  if (isOfFolder) await verifyFolderWithBundles(cli, file, flags, asked);
  else await verifyFileWithBundles(cli, file, flags, asked);
}

async function verify(cli: Cli, file: string, flags: Flags & { bundle: string }): Promise<void> {
  const startedAt = cli.now();
  const { metadata, metadataSalt, set, path } = flags;
  if (metadata === undefined && metadataSalt !== undefined) {
    throw new UsageError('--metadata-salt opens the metadata that --metadata gives');
  }
  const isOfFolder = isFolder(file);
  checkSetFlags(file, isOfFolder, flags);
  const bundle = await readBundleFile(flags.bundle);
  const { options: trusted, origin } = await readOptions(cli, flags);
  const options = {
    ...trusted,
    ...(metadata !== undefined && { metadata: await readJsonFlag('--metadata', metadata), metadataSalt }),
    ...(flags.receipt !== undefined && {
      receipt: await readInputFile(flags.receipt, 'a receipt', MAX_RECEIPT_BYTES),
    }),
  };
  if (isOfFolder && set !== undefined) {
    const { verifyFolder } = await import('./verify-folder.js');
    const verifySet = (read: SetAsked['set']) => verifyBundle(bundle, { ...options, set: read });
    await verifyFolder(cli, file, { flags: { ...flags, set }, verify: verifySet, origin });
    return;
  }
  const artifact = await artifactSha256(cli, file);
  const asked = { ...(set !== undefined && { set: await openSet(set) }), memberPath: path };
  const verification = await verifyBundle(bundle, { ...options, artifactSha256: artifact, ...asked });
  if (flags.junit !== undefined) {
    const cases = [verificationCase(file, verification)];
    await writeJUnit(flags.junit, { cases, startedAt, endedAt: cli.now() });
  }
  printVerification(cli, verification, origin, flags);
}

/** Throws UsageError if the flags of sets and the file do not go together. */
function checkSetFlags(file: string, isOfFolder: boolean, flags: Flags): void {
  const { set, path } = flags;
  if (isOfFolder && set === undefined)
    throw new UsageError(
      `${file} is a directory: give its set file with --set, or a folder of bundles with --bundles`,
    );
  if (isOfFolder && path !== undefined) throw new UsageError('--path is for one file, not for a folder');
  if (!isOfFolder) checkFileFlags(flags);
}

/** Throws UsageError if there are flags of folders. */
function checkFileFlags({ extraOk, include, exclude, followSymlinks }: Flags): void {
  if ([extraOk, include, exclude, followSymlinks].some((flag) => flag !== undefined)) {
    throw new UsageError('--extra-ok, --include, --exclude and --follow-symlinks need a folder');
  }
}

function demandsOf({ minWitnesses, requireWitness }: Flags) {
  const least = minWitnesses === undefined ? 0 : parseCount('--min-witnesses', minWitnesses, MAX_WITNESSES);
  return { minWitnesses: least, requireWitnesses: requireWitness ?? [] };
}

function printVerification(cli: Cli, verification: Verification, origin: string, { json }: Flags): void {
  cli.exitCode = EXIT_CODES[verification.verdict];
  if (json) print(cli, JSON.stringify(verificationJson(verification, origin)));
  else for (const line of formatVerification(verification, origin)) print(cli, printable(line));
}
