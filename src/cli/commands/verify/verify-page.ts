import type { Command } from 'commander';
import { readTrust } from '../../../proof/verify/trust.js';
import { standaloneVerifyPage } from '../../../server/web/standalone-page.js';
import { type Cli, print, printError, UsageError } from '../../cli.js';
import { getTrustRoots } from '../../input/trust-roots.js';
import { assertNew, writeOutput } from '../../output/write-output.js';

type Flags = {
  trustRoots?: string;
  verifyUrl?: string;
  dataDir?: string;
  out?: string;
  force?: boolean;
  json?: boolean;
};

/** A larger page is one that mail servers and people turn down. */
const MAX_BYTES = 150 * 1024;

const HELP = `
The page verifies proof bundles in a browser, without any network, also from a local disk. It is one HTML file with the
trust roots inside, and has a field to give others. Archive it beside your bundles: it will verify them when this service
is gone.

Trust roots come from --trust-roots, else from trust_roots.json under --verify-url, ATTEST_VERIFY_URL, ATTEST_URL, or
the address in the data directory. The page is as trustworthy as where you got it and them from. Trust roots change when
keys do: make a new page from time to time.

Examples:
  $ attest verify-page > verify.html
  $ attest verify-page --trust-roots trust_roots.json --out verify.html`;

/** `attest verify-page`. */
export function addVerifyPage(program: Command, cli: Cli): void {
  program
    .command('verify-page')
    .option('--trust-roots <file>', 'trust roots to put inside: a copy of trust_roots.json')
    .option('--verify-url <url>', 'base URL of trust_roots.json, if there is no copy (ATTEST_VERIFY_URL)')
    .option('--data-dir <dir>', 'data directory of `attest up` (DATA_DIR, default: .data)')
    .option('--out <file>', 'output file (default: standard output)')
    .option('--force', 'overwrite the output file')
    .option('--json', 'print what was written, and errors, as JSON; needs --out')
    .addHelpText('after', HELP)
    .action((flags: Flags) => writePage(cli, flags));
}

async function writePage(cli: Cli, { out, force, json, ...flags }: Flags): Promise<void> {
  if (json && out === undefined) throw new UsageError('--json needs --out: the page itself is HTML');
  if (out !== undefined) assertNew(out, { force });
  const { document, text, from } = await getTrustRoots(cli.env, flags);
  const [problem] = readTrust(document).problems;
  if (problem !== undefined) {
    throw new UsageError(
      `${from} has no usable trust roots: ${problem.path || 'the document'} ${problem.message}`,
    );
  }
  const page = standaloneVerifyPage({ text, from, savedAt: cli.now().toISOString() });
  const bytes = Buffer.byteLength(page);
  if (bytes > MAX_BYTES) {
    printError(
      cli,
      `the page has ${bytes} bytes, more than ${MAX_BYTES}: the trust roots name many keys; it works all the same`,
    );
  }
  if (out === undefined) {
    cli.stdout.write(page);
    return;
  }
  await writeOutput(out, page);
  if (json) print(cli, JSON.stringify({ file: out, bytes, trust_roots: from }));
  else printError(cli, `wrote ${out}, ${bytes} bytes, with the trust roots of ${from}`);
}
