import type { Command } from 'commander';
import { fromUtf8 } from '../../../proof/bytes/encoding.js';
import { readHead } from '../../../proof/set/head.js';
import { proveMember } from '../../../proof/set/set-proof.js';
import { readBundle } from '../../../proof/verify/read/read-bundle.js';
import { withoutByteOrderMark } from '../../../protocol/byte-order-mark.js';
import { type Cli, print, printError, UsageError } from '../../cli.js';
import { readBundleFile } from '../../input/bundle-file.js';
import { assertNew, writeOutput } from '../../output/write-output.js';
import { openSet } from '../../sets/set-file.js';

type Flags = { bundle: string; output?: string; force?: boolean; json?: boolean };

/** `attest set proof`. */
export function addProof(command: Command, cli: Cli): void {
  command
    .description('write a bundle that proves one file of a set, without the set')
    .argument('<set>', 'set file')
    .argument('<path>', 'path of the file in the set')
    .requiredOption('--bundle <file>', 'proof bundle of the set')
    .option('-o, --output <file>', 'output file (default: standard output)')
    .option('--force', 'overwrite the output file')
    .option('--json', 'print what was written, and errors, as JSON; needs --output')
    .action((set: string, path: string, flags: Flags) => prove(cli, { set, path }, flags));
}

async function prove(cli: Cli, { set, path }: { set: string; path: string }, flags: Flags): Promise<void> {
  const { bundle, output, json } = flags;
  if (output !== undefined) assertNew(output, flags);
  if (json && output === undefined) throw new UsageError('--json needs --output: a bundle is JSON itself');
  const text = readAttested(bundle, await readBundleFile(bundle));
  const proof = await proveMember(await openSet(set), path);
  if (readHead(proof.head).headSha256 !== text.sha256) {
    throw new Error(`${bundle} is not the bundle of ${set}: it attests sha256:${text.sha256}`);
  }
  const joined = `${text.before},"set_proof":${JSON.stringify(proof)}}\n`;
  if (output === undefined) {
    cli.stdout.write(joined);
    return;
  }
  await writeOutput(output, joined);
  if (json) print(cli, JSON.stringify({ file: output, path: proof.entry.path, index: proof.index }));
  else printError(cli, `wrote ${output}, ${Buffer.byteLength(joined)} bytes`);
}

/** The text of a bundle up to its last brace, and the digest that it attests. Throws UsageError if it is no bundle of a set. */
function readAttested(file: string, bytes: Uint8Array): { before: string; sha256: string } {
  const { parsed, unreadable, uncheckable, problems } = readBundle(bytes);
  if (parsed === undefined) {
    const [problem] = problems;
    const wrong = `${problem?.path || 'it'} ${problem?.message}`;
    throw new UsageError(`${file} ${unreadable ?? uncheckable ?? `is not a bundle: ${wrong}`}`);
  }
  if (parsed.setProof !== undefined) throw new UsageError(`${file} has a member proof already`);
  const text = withoutByteOrderMark(fromUtf8(bytes)).trimEnd();
  return { before: text.slice(0, -1).trimEnd(), sha256: parsed.submission.artifactSha256 };
}
