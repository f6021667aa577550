/** Debian's library python3-opentimestamps as counterpart of the codec. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runOpentimestampsPython } from '../../foreign/python/python-opentimestamps.js';

/** One command of foreign.py with its arguments; bytes are in hex. */
type ForeignCommand =
  | readonly ['read', [file: string]]
  | readonly ['read_answer', [message: string, answer: string]]
  | readonly ['merge', [files: readonly string[]]]
  | readonly ['verify', [file: string, header: string]];

/** An attestation as foreign.py describes it. */
export type ForeignAttestation = { message: string; kind: string; height?: number; uri?: string };

/** `error` is the name of the exception. */
export type ForeignResult = {
  file?: string;
  answer?: string;
  attestations?: ForeignAttestation[];
  times?: number[];
  error?: string;
};

/** Runs commands in one process. Returns their results in order. */
export async function runForeign(commands: readonly ForeignCommand[]): Promise<ForeignResult[]> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-ots-'));
  try {
    const file = join(dir, 'commands.json');
    await writeFile(file, JSON.stringify(commands));
    const script = join(process.cwd(), 'test/support/witnesses/opentimestamps/foreign.py');
    return JSON.parse(await runOpentimestampsPython(['-W', 'ignore', script, file]));
  } finally {
    await rm(dir, { recursive: true });
  }
}
