/** The part of `npm run check` that is about protos: form, rules, compatibility, and generated code up to date. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeThirdPartyProtos } from './third-party-protos.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const BUF = join(root, 'node_modules/.bin/buf');
/** Nothing that a client or a stored message relies on may change; other people's protos are theirs. */
const BREAKING_RULES = JSON.stringify({
  version: 'v2',
  breaking: { use: ['FILE'], ignore: ['google', 'buf', 'library'] },
});

/** A check: undefined when it passes, else what is wrong. */
type Check = { name: string; run: (scratch: string) => string | undefined };

const CHECKS: readonly Check[] = [
  { name: 'protos are formatted', run: () => problem(buf('format', '--diff', '--exit-code', 'proto')) },
  { name: 'protos keep the lint rules', run: () => problem(buf('lint')) },
  { name: 'protos break no client', run: findBreakingChanges },
  { name: 'generated code is up to date', run: findStaleCode },
];

function buf(...args: string[]): SpawnSyncReturns<string> {
  return spawnSync(BUF, args, { cwd: root, encoding: 'utf8' });
}

function problem({ status, stdout, stderr }: SpawnSyncReturns<string>): string | undefined {
  return status === 0 ? undefined : `${stdout}${stderr}`.trim() || `ended with ${status}`;
}

function git(...args: string[]): string | undefined {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

/**
 * Compares with the protos of the commit this change is built on: where main was left, or the last commit. The base
 * image is built from git's copy, with the third-party protos linked in, as those are not in git.
 */
function findBreakingChanges(scratch: string): string | undefined {
  const head = git('rev-parse', 'HEAD');
  const fork = git('merge-base', 'HEAD', 'origin/main') ?? git('merge-base', 'HEAD', 'main');
  const base = fork === undefined || fork === head ? head : fork;
  if (base === undefined || git('ls-tree', base, 'buf.yaml') === '') {
    console.log('   there is no earlier version of the protos to compare with');
    return undefined;
  }
  const folder = join(scratch, 'base');
  const unpack = 'mkdir "$2" && git archive "$1" | tar -x -C "$2"';
  const unpacked = spawnSync('sh', ['-c', unpack, 'sh', base, folder], { cwd: root, encoding: 'utf8' });
  if (unpacked.status !== 0) return problem(unpacked);
  symlinkSync(join(root, '.protos'), join(folder, '.protos'));
  const [before, now] = [join(scratch, 'base.binpb'), join(scratch, 'now.binpb')];
  const compare = ['breaking', now, '--against', before, '--config', BREAKING_RULES];
  return (
    problem(buf('build', folder, '-o', before)) ??
    problem(buf('build', '-o', now)) ??
    problem(buf(...compare))
  );
}

/** Generates anew, elsewhere, and compares. */
function findStaleCode(scratch: string): string | undefined {
  for (const [template, committed] of [
    ['buf.gen.yaml', 'gen'],
    ['test/buf.gen.yaml', 'test/gen'],
  ] as const) {
    const out = join(scratch, template.replaceAll('/', '-'));
    const generated = problem(buf('generate', '--template', template, '-o', out));
    if (generated !== undefined) return generated;
    const compared = spawnSync('diff', ['-r', '-q', join(out, committed), committed], {
      cwd: root,
      encoding: 'utf8',
    });
    if (compared.status !== 0)
      return `${compared.stdout}${compared.stderr}run "npm run generate" and commit ${committed}`;
  }
  return undefined;
}

const scratch = mkdtempSync(join(tmpdir(), 'attest-check-'));
try {
  writeThirdPartyProtos(root);
  for (const { name, run } of CHECKS) {
    const found = run(scratch);
    console.log(`${found === undefined ? 'ok    ' : 'FAILED'} ${name}`);
    if (found === undefined) continue;
    console.log(found.replaceAll(/^/gm, '       '));
    process.exitCode = 1;
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
