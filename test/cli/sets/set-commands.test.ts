/** `attest set proof`, `redact` and `show`. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { presentOf } from '../../client/files/folders.js';
import { runHere, runProcess } from '../../support/calling/run-cli.js';
import { attestFolder, setOf } from './attested-folder.js';

const PATHS = ['a/b', 'one', 'shots/s\u202ehot.png', 'two'];

t.test('one file proves one file, without the set', async (t) => {
  const { at, art, trust, headSha256 } = await attestFolder(t, PATHS);
  const args = ['set', 'proof', at('run.set.json'), 'a/b', '--bundle', at('run.bundle.json')];
  const made = await runProcess([...args, '-o', at('b.json')]);
  t.match(made, { code: 0, stdout: '', stderr: /^wrote .*b\.json, \d+ bytes\n$/ });
  t.match(await runHere([...args, '-o', at('b.json')]), { code: 2, stderr: /b\.json exists, .* --force\n$/ });
  t.match(await runHere([...args, '-o', at('b.json'), '--force']), { code: 0 });
  const verify = (file: string) => runHere(['verify', join(art, file), '--bundle', at('b.json'), ...trust]);
  t.match(await verify('a/b'), {
    code: 0,
    stdout: /\nThis artifact is a\/b in the set of 4 files that was attested/,
  });
  t.match(await verify('one'), { code: 1, stdout: /the file is not a\/b of the set/ });
  const moved = ['verify', join(art, 'a/b'), '--bundle', at('b.json'), ...trust, '--path', 'one'];
  t.match(await runHere(moved), { code: 1, stdout: /the entry is a\/b, not one/ });
  const printed = await runHere(args);
  t.equal(printed.stdout, readFileSync(at('b.json'), 'utf8'));
  const { set_proof: proof, ...bundle } = JSON.parse(printed.stdout);
  t.same(bundle, JSON.parse(readFileSync(at('run.bundle.json'), 'utf8')), 'the bundle is what it was');
  t.equal(bundle.submission.artifact_sha256, headSha256);
  t.match(proof, { entry: { path: 'a/b' }, index: 0 });
  proof.entry.path = 'a/c';
  writeFileSync(at('b.json'), JSON.stringify({ ...bundle, set_proof: proof }));
  t.match(await verify('a/b'), { code: 1, stdout: /the entry is not proven to be in the set/ });
});

t.test(
  'there is no proof of a path that is withheld or not there, nor with the bundle of another set',
  async (t) => {
    const { at } = await attestFolder(t, PATHS);
    const prove = (set: string, path: string) =>
      runHere([
        'set',
        'proof',
        at(set),
        path,
        '--bundle',
        at('run.bundle.json'),
        '-o',
        at('proof.json'),
        '--force',
      ]);
    const kept = [
      'set',
      'redact',
      at('run.set.json'),
      '--keep',
      'shots/**',
      '--keep',
      '/one',
      '-o',
      at('public.json'),
    ];
    t.match(await runHere(kept), { code: 0, stderr: /public\.json: 2 entries are kept, 2 withheld now\n$/ });
    t.match(await prove('public.json', 'two'), {
      code: 1,
      stderr: /two is not in the set, unless it is one of the 2 that are withheld/,
    });
    t.match(await prove('public.json', 'one'), { code: 0 });
    t.match(await prove('run.set.json', 'none'), { code: 1, stderr: /none is not in the set/ });
    t.match(await prove('run.set.json', '../one'), {
      code: 1,
      stderr: /a segment that is empty, \. or \.\./,
    });
    writeFileSync(at('other.json'), setOf(PATHS).text);
    t.match(await prove('other.json', 'one'), {
      code: 1,
      stderr: /run\.bundle\.json is not the bundle of .*other\.json/,
    });
    const again = ['set', 'proof', at('run.set.json'), 'one', '--bundle', at('proof.json')];
    t.match(await runHere(again), { code: 2, stderr: /has a member proof already/ });
    const swapped = ['set', 'proof', at('run.set.json'), 'one', '--bundle', at('run.set.json')];
    t.match(await runHere(swapped), { code: 2, stderr: /run\.set\.json is a set file, .* and not a bundle/ });
  },
);

t.test('a redacted set verifies what it shows, and counts what it withholds', async (t) => {
  const { at, art, trust } = await attestFolder(t, PATHS);
  const redact = (...more: string[]) =>
    runHere(['set', 'redact', at('run.set.json'), '--keep', 'o*', '-o', at('public.json'), ...more]);
  t.match(JSON.parse((await redact('--json')).stdout), { file: at('public.json'), kept: 1, withheld: 3 });
  t.notMatch(readFileSync(at('public.json'), 'utf8'), /two|shot/);
  t.match(await redact(), { code: 2, stderr: /public\.json exists, .* --force/ });
  t.match(await redact('--force'), { code: 0 });
  const evidence = ['--set', at('public.json'), '--bundle', at('run.bundle.json'), ...trust];
  const whole = await runHere(['verify', art, ...evidence]);
  t.match(whole, {
    code: 1,
    stdout: /\nFiles: 1 ok, 0 changed, 0 missing, 3 extra, 3 withheld; the set has 4 files\n/,
  });
  t.match(await runHere(['verify', art, ...evidence, '--include', 'one']), { code: 0 });
  t.match(await runHere(['verify', join(art, 'one'), ...evidence]), { code: 0 });
  const withheld = await runHere(['verify', join(art, 'two'), ...evidence]);
  t.match(withheld, { code: 2, stdout: /not in the set, unless it is one of the 3 withheld/ });
  const none = await runHere(['set', 'redact', at('run.set.json'), '--keep', 'x', '-o', at('none.json')]);
  t.match(none, { code: 1, stderr: /no entry of .* matches --keep x/ });
  t.throws(() => readFileSync(at('none.json')), { code: 'ENOENT' });
});

t.test('show lists the entries as sha256sum does, and what is attested', async (t) => {
  const notBefore = { origin: 'live.log.example', rootHash: 'ab'.repeat(32), treeSize: 7 };
  const { at, headSha256, text } = await attestFolder(t, PATHS, notBefore);
  const { code, stdout } = await runHere(['set', 'show', at('run.set.json')]);
  t.equal(code, 0);
  t.match(stdout, `${presentOf('a/b').sha256}  a/b\n${presentOf('one').sha256}  one\n`);
  t.match(stdout, '  shots/s\ufffdhot.png\n');
  t.match(stdout, `\n4 files, 26 B\nAttested: sha256:${headSha256}\n`);
  t.match(stdout, /\nClosed after checkpoint 7 of live\.log\.example, root (?:ab)+\n$/);
  const json = JSON.parse((await runHere(['set', 'show', at('run.set.json'), '--json'])).stdout);
  const { entries, head } = JSON.parse(text);
  t.match(json, { head_sha256: headSha256, bytes: 26, withheld: 0 });
  t.same([json.entries, json.head], [entries, head]);
  writeFileSync(at('run.set.json'), text.replace('"bytes":3', '"bytes":4'));
  const wrong = await runHere(['set', 'show', at('run.set.json')]);
  t.match(wrong, { code: 1, stdout: '', stderr: /the head is not that of the entries/ });
});
