import type { Command } from 'commander';
import type { SetAsked } from '../../../proof/verify/steps/set-step.js';
import { type Verification, verifyBundle } from '../../../proof/verify/verify.js';
import type { EnvironmentName } from '../../../protocol/environment.js';
import { printable } from '../../../protocol/printable.js';
import { type Cli, print, UsageError } from '../../cli.js';
import { environmentFlag, readJsonFlag } from '../../flags/client-flags.js';
import { EVM_RPC_HELP, evmRpcFlag, openEvmRpcs } from '../../flags/evm-flags.js';
import { parseCount } from '../../flags/flag-values.js';
import { artifactSha256 } from '../../input/artifact.js';
import { type BitcoinFlags, readBitcoinHeaders } from '../../input/bitcoin-headers.js';
import { readBundleFile } from '../../input/bundle-file.js';
import { readInputFile } from '../../input/input-file.js';
import { getTrustRoots } from '../../input/trust-roots.js';
import { EXIT_CODES } from '../../output/exit-codes.js';
import { runCheck } from '../../output/report-error.js';
import { formatVerification, verificationJson } from '../../output/verification-text.js';
import { addFolderFlags, type FolderFlags, isFolder } from '../../sets/folder-files.js';
import { openSet } from '../../sets/set-file.js';

type Flags = BitcoinFlags &
  FolderFlags & {
    bundle?: string;
    set?: string;
    path?: string;
    extraOk?: boolean;
    export?: string;
    trustRoots?: string;
    verifyUrl?: string;
    dataDir?: string;
    environment?: EnvironmentName;
    project?: string;
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
const PROJECT_ID = /^prj_[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const PROJECT_ID_FORM = 'prj_ and 26 digits and capital letters';

const HELP = `
Verifies locally that the bundle's statement is about the file, that it is in the log, and that witnesses signed the log's
checkpoint. Prints the result of each step and a summary of what is proven.

Any project of a service can attest any file. --project requires a certain one: get its ID from the expected attester.
Without it the summary names the project; check it yourself.

Trust roots never come from the bundle: they come from --trust-roots, else from trust_roots.json under --verify-url,
ATTEST_VERIFY_URL, ATTEST_URL, or the address in the data directory. Trust roots fetched this way are only as trustworthy
as the server: prefer a copy obtained through another channel.

Evidence of OpenTimestamps is checked against headers of Bitcoin blocks from a node or site that you trust. Without the
header of its block it is not checked, and the report says which block that is.

--min-witnesses and --require-witness ask for more than the policy of the trust roots: the verdict is "not verified" unless
so many witnesses, or those, are verified. Names are those in the report.

--json prints what is proven under "statement", and metadata that opens the commitment under "verified": both only if the
verdict is "verified".

--set takes the set file of the folder that was submitted: with a folder, every file is compared, and those that are changed,
missing or extra are listed; withheld entries are counted. Give the same --include, --exclude and --follow-symlinks as
for \`attest submit\`. With one file, that file must be in the set, at --path if it is given. A bundle with a member proof
(\`attest set proof\`) needs no set file.

--export verifies what an export has written: an object (.jsonl, .jsonl.gz), a manifest.json, or a directory with a
downloaded export or part of it. Each line must be a verified submission. Each manifest must be signed, its objects must
be there as it lists them, and the manifests must cover the log without a gap.

${EVM_RPC_HELP.trim()}

Exit codes: 0 verified, 1 not verified, or files are changed, missing or extra, 2 could not check

Examples:
  $ attest verify --export ./attestations --trust-roots trust_roots.json
  $ attest verify model.bin --bundle model.bin.bundle --trust-roots trust_roots.json \\
      --project prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T
  $ attest verify art/ --set run.set.json --bundle run.bundle.json
  $ attest verify art/shot.png --set run.set.json --bundle run.bundle.json
  $ attest verify sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 --bundle b.json --json
  $ attest verify model.bin --bundle b.json --bitcoin-header \
      850000:$(bitcoin-cli getblockheader $(bitcoin-cli getblockhash 850000) false)
  $ attest verify report.json --bundle b.json --metadata @metadata.json --metadata-salt 5f4e...`;

/** `attest verify`. */
export function addVerify(program: Command, cli: Cli): void {
  addFolderFlags(program.command('verify'))
    .description('verify a file or a folder against its proof bundle, or exported submissions')
    .argument('[file]', 'file, sha256: and 64 hex digits, or with --set a folder')
    .option('--bundle <file>', 'proof bundle of the file, or of its set')
    .option('--set <file>', 'set file that has the file, or the files of the folder')
    .option('--path <path>', 'path that the file must have in the set (default: any)')
    .option('--extra-ok', 'let files of the folder pass that are not in the set')
    .option('--export <path>', 'exported object, manifest or directory, instead of a file and its bundle')
    .option('--trust-roots <file>', 'trust roots: a copy of trust_roots.json')
    .option('--verify-url <url>', 'base URL of trust_roots.json, if there is no copy (ATTEST_VERIFY_URL)')
    .option('--data-dir <dir>', 'data directory of `attest up` (DATA_DIR, default: .data)')
    .addOption(environmentFlag('required environment of the bundle').default('live'))
    .option('--project <id>', 'required project of the submission, prj_...')
    .option('--metadata <json>', 'expected metadata, as JSON or @<file>; needs --metadata-salt')
    .option('--metadata-salt <hex>', 'salt of the metadata commitment')
    .option('--bitcoin-header <height:hex>', 'header of a Bitcoin block, 80 bytes; repeatable', collect)
    .option('--bitcoin-headers <file>', 'headers of Bitcoin blocks, lines of height and hex')
    .addOption(evmRpcFlag())
    .option('--min-witnesses <n>', 'how many witnesses beside the log must be verified')
    .option('--require-witness <name>', 'witness that must be verified; repeatable', collect)
    .option('--receipt <file>', 'COSE receipt of the same submission, to be verified as well')
    .option('--json', 'print the report as JSON')
    .addHelpText('after', HELP)
    .action((file: string | undefined, flags: Flags) => runCheck(cli, flags, () => run(cli, file, flags)));
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

async function run(cli: Cli, file: string | undefined, flags: Flags): Promise<void> {
  const { bundle, metadata, metadataSalt, project } = flags;
  if (project !== undefined && !PROJECT_ID.test(project)) {
    throw new UsageError(`--project is not the id of a project, ${PROJECT_ID_FORM}`);
  }
  if (flags.export === undefined) {
    if (bundle === undefined)
      throw new UsageError("required option '--bundle <file>' not specified, nor --export <path>");
    if (file === undefined) throw new UsageError("missing required argument 'file'");
    await verify(cli, file, { ...flags, bundle });
    return;
  }
  if ([file, bundle, flags.set, metadata, metadataSalt].some((given) => given !== undefined)) {
    throw new UsageError('--export goes with no file, --bundle, --set, --metadata or --metadata-salt');
  }
  const { verifyExport } = await import('../../verify-export/verify-export-command.js');
  await verifyExport(cli, flags.export, { ...flags, ...demandsOf(flags) });
}

async function verify(cli: Cli, file: string, flags: Flags & { bundle: string }): Promise<void> {
  const { metadata, metadataSalt, project, set, path } = flags;
  if ((metadata === undefined) !== (metadataSalt === undefined)) {
    throw new UsageError('--metadata and --metadata-salt must be given together');
  }
  const isOfFolder = isFolder(file);
  checkSetFlags(file, isOfFolder, flags);
  const bundle = await readBundleFile(flags.bundle);
  const trustRoots = await getTrustRoots(cli.env, flags);
  const options = {
    ...(metadata !== undefined && { metadata: await readJsonFlag('--metadata', metadata), metadataSalt }),
    environment: flags.environment ?? 'live',
    ...(project !== undefined && { project }),
    ...demandsOf(flags),
    trustRoots: trustRoots.document,
    bitcoinHeaders: await readBitcoinHeaders(flags),
    ...openEvmRpcs(cli.env, flags.evmRpc),
    ...(flags.receipt !== undefined && {
      receipt: await readInputFile(flags.receipt, 'a receipt', MAX_RECEIPT_BYTES),
    }),
    now: cli.now(),
  };
  const { origin } = trustRoots;
  if (isOfFolder && set !== undefined) {
    const { verifyFolder } = await import('./verify-folder.js');
    const verifySet = (read: SetAsked['set']) => verifyBundle(bundle, { ...options, set: read });
    await verifyFolder(cli, file, { flags: { ...flags, set }, verify: verifySet, origin });
    return;
  }
  const artifact = await artifactSha256(cli, file);
  const asked = { ...(set !== undefined && { set: await openSet(set) }), memberPath: path };
  const verification = await verifyBundle(bundle, { ...options, artifactSha256: artifact, ...asked });
  printVerification(cli, verification, origin, flags);
}

/** Throws UsageError if the flags of sets and the file do not go together. */
function checkSetFlags(file: string, isOfFolder: boolean, flags: Flags): void {
  const { set, path, extraOk, include, exclude, followSymlinks } = flags;
  const isForFolder = [extraOk, include, exclude, followSymlinks].some((flag) => flag !== undefined);
  if (isOfFolder && set === undefined)
    throw new UsageError(`${file} is a directory: give its set file with --set`);
  if (isOfFolder && path !== undefined) throw new UsageError('--path is for one file, not for a folder');
  if (!isOfFolder && isForFolder)
    throw new UsageError('--extra-ok, --include, --exclude and --follow-symlinks need a folder');
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
