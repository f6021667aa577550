/** Repositories of programs and rules that no registry has, at pinned commits. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { run, runOrThrow } from '../command.js';

/** A repository by owner and name. */
type Source = { readonly name: string; readonly commit: string };

const CONFORMA: Source = {
  name: 'conforma/policy',
  commit: '7211d0329e93fda0a6d6d3d33c3909fc6a7681ca',
};
/** The verifier of layouts of ITE-10 and ITE-11. */
const ATTESTATION_VERIFIER: Source = {
  name: 'in-toto/attestation-verifier',
  commit: '1717532a62679af7bb46a027cda0848b783553de',
};

/** The folder of Conforma's rules in the folder of installed programs. */
export function conformaRules(folder: string): string {
  return join(checkoutOf(folder, CONFORMA), 'policy');
}

/**
 * Checks out Conforma's rules, and in-toto's attestation-verifier, which is built into `bin`. `from` is the URL, or the folder, that
 * has repositories as owner/name.
 */
export async function installSources(folder: string, bin: string, from: string): Promise<void> {
  for (const source of [CONFORMA, ATTESTATION_VERIFIER])
    await checkOut(checkoutOf(folder, source), source, from);
  const program = join(bin, 'attestation-verifier');
  await runOrThrow('go', ['build', '-o', program, '.'], { cwd: checkoutOf(folder, ATTESTATION_VERIFIER) });
}

function checkoutOf(folder: string, { name }: Source): string {
  return join(folder, 'sources', name);
}

async function checkOut(cwd: string, { name, commit }: Source, from: string): Promise<void> {
  await mkdir(cwd, { recursive: true });
  const head = await run('git', ['rev-parse', '--verify', 'HEAD'], { cwd });
  if (head.output.trim() === commit) return;
  await runOrThrow('git', ['init', '--quiet'], { cwd });
  await runOrThrow('git', ['fetch', '--quiet', '--depth', '1', `${from}/${name}`, commit], { cwd });
  await runOrThrow('git', ['checkout', '--quiet', '--detach', commit], { cwd });
}
