import type { Command } from 'commander';
import { fromPem } from '../../../proof/asn1/pem.js';
import { type PublicKey, parsePublicKey } from '../../../proof/asn1/public-key.js';
import { fromHex, toHex } from '../../../proof/bytes/encoding.js';
import { FormatError } from '../../../proof/bytes/format-error.js';
import { sha256 } from '../../../proof/bytes/primitives.js';
import type { Artifact } from '../../../proof/verify-sigstore/artifact-steps.js';
import { MAX_SIGSTORE_BUNDLE_BYTES } from '../../../proof/verify-sigstore/bundle.js';
import {
  MAX_TRUSTED_ROOT_BYTES,
  parseTrustedRoot,
  type SigstoreTrust,
} from '../../../proof/verify-sigstore/trusted-root.js';
import {
  type SigstoreVerification,
  verifySigstoreBundle,
} from '../../../proof/verify-sigstore/verify-sigstore.js';
import { printable } from '../../../protocol/printable.js';
import { type Cli, print, UsageError } from '../../cli.js';
import { artifactSha256, parseDigestArgument } from '../../input/artifact.js';
import { inputFileSize, readInputFile } from '../../input/input-file.js';
import { EXIT_CODES } from '../../output/exit-codes.js';
import { runCheck } from '../../output/report-error.js';
import { formatSteps } from '../../output/verification-text.js';

type Flags = {
  bundle: string;
  key: string;
  trustedRoot?: string;
  requireTimestamp?: boolean;
  json?: boolean;
};

const MAX_KEY_BYTES = 64 * 1024;
/** To verify a signature over the artifact itself, all of it is read into memory. */
const MAX_SIGNED_FILE_BYTES = 256 * 1024 * 1024;

const HELP = `
Verifies a Sigstore bundle v0.3 signed by a key, of this service (bundle.sigstore.json) or any other signer: an in-toto
statement in DSSE with the file as subject, or a signature over the file itself (which needs the file, at most 256 MiB). Keys: Ed25519, ECDSA P-256 with SHA-256, P-384 with SHA-384, P-521 with SHA-512.

--trusted-root verifies each log entry by inclusion proof and signed checkpoint, and each RFC 3161 time stamp by its
certificate chain; all must be valid. Time stamps by authorities outside the trusted root are ignored;
--require-timestamp needs a valid one. Without a trusted root only the signature is verified, and the report says so.
Works offline. Bundles with a certificate, or of other versions, are not supported.

Exit codes: 0 verified, 1 not verified, 2 could not check

Examples:
  $ attest verify-sigstore report.json --bundle report.sigstore.json --key dsse.pem --trusted-root trusted_root.json
  $ attest verify-sigstore model.bin --bundle b.json --key cosign.pub --json`;

/** `attest verify-sigstore`. */
export function addVerifySigstore(program: Command, cli: Cli): void {
  program
    .command('verify-sigstore')
    .description('verify a file against a Sigstore bundle and a public key')
    .argument('<file>', 'file, or sha256: and 64 hex digits')
    .requiredOption('--bundle <file>', 'Sigstore bundle')
    .requiredOption('--key <file>', 'public key of the signer, in PEM')
    .option('--trusted-root <file>', 'trusted logs and time-stamping authorities: a trusted_root.json')
    .option('--require-timestamp', 'require a time stamp by an authority of the trusted root')
    .option('--json', 'print the report as JSON')
    .addHelpText('after', HELP)
    .action((file: string, flags: Flags) => runCheck(cli, flags, () => verify(cli, file, flags)));
}

async function verify(cli: Cli, file: string, flags: Flags): Promise<void> {
  const bundle = await readInputFile(flags.bundle, 'a Sigstore bundle', MAX_SIGSTORE_BUNDLE_BYTES);
  const key = await readKey(flags.key);
  const trust = await readTrust(flags.trustedRoot);
  const artifact = await readArtifact(cli, file);
  const verification = await verifySigstoreBundle(bundle, {
    key,
    trust,
    artifact,
    wantsTimestamp: flags.requireTimestamp,
  });
  cli.exitCode = EXIT_CODES[verification.verdict];
  const lines = flags.json
    ? [JSON.stringify(sigstoreJson(verification, key, flags))]
    : formatSigstore(verification, key, flags);
  for (const line of lines) print(cli, flags.json ? line : printable(line));
}

async function readKey(path: string): Promise<PublicKey> {
  const pem = await readInputFile(path, 'a public key', MAX_KEY_BYTES);
  return parseOrUsageError(path, () => parsePublicKey(fromPem('PUBLIC KEY', new TextDecoder().decode(pem))));
}

async function readTrust(path: string | undefined): Promise<SigstoreTrust | undefined> {
  if (path === undefined) return undefined;
  const json = await readInputFile(path, 'a trusted root', MAX_TRUSTED_ROOT_BYTES);
  return parseOrUsageError(path, () => parseTrustedRoot(json));
}

function parseOrUsageError<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof FormatError ? new UsageError(`${path}: ${error.message}`) : error;
  }
}

async function readArtifact(cli: Cli, file: string): Promise<Artifact> {
  const isInMemory =
    parseDigestArgument(file) === undefined && (await inputFileSize(file)) <= MAX_SIGNED_FILE_BYTES;
  if (!isInMemory) return { sha256: fromHex(await artifactSha256(cli, file)) };
  const bytes = await readInputFile(file, 'a file that is not hashed in pieces', MAX_SIGNED_FILE_BYTES);
  return { sha256: sha256(bytes), bytes };
}

function formatSigstore({ steps, summary }: SigstoreVerification, key: PublicKey, flags: Flags): string[] {
  const root = flags.trustedRoot === undefined ? '' : ` and the file ${flags.trustedRoot}`;
  const trusting = `Trusting the key ${flags.key} (${key.algorithm}, ${toHex(sha256(key.spki))})${root}`;
  return [...formatSteps(steps), '', trusting, '', summary];
}

/** The findings for --json, in snake_case. Omits whatever is not proven. */
function sigstoreJson(verification: SigstoreVerification, key: PublicKey, flags: Flags): object {
  const { verdict, summary, steps, existedBy } = verification;
  return {
    verdict,
    summary,
    key: { algorithm: key.algorithm, fingerprint_sha256: toHex(sha256(key.spki)) },
    trusted_root: flags.trustedRoot ?? null,
    existed_by: verdict === 'verified' ? existedBy : undefined,
    steps,
  };
}
