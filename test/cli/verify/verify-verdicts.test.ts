/** The exit code of a verification, by what the bundle is and what it is given for. */
import { join } from 'node:path';
import t from 'tap';
import { makeService } from '../../proof/sample.js';
import { futureBundles } from '../../proof/verify/future.js';
import { changed, rootsOf } from '../../proof/verifying.js';
import { runHere, runProcess } from '../../support/calling/run-cli.js';
import { DIGEST, folder } from './artifact-folder.js';

t.test('a bundle of tomorrow ends with exit code 0 or 2, and what is not known is named', async (t) => {
  const codes = { verified: 0, not_verified: 1, could_not_check: 2 };
  for (const [i, { what, verdict, says, bundle }] of (await futureBundles()).entries()) {
    const { args } = folder(t, { 'bundle.json': JSON.stringify(bundle) });
    const run = i === 0 ? runProcess : runHere;
    t.match(await run(args), { code: codes[verdict], stdout: says }, what);
  }
});

t.test('another artifact, a changed bundle or other trust roots end with exit code 1', async (t) => {
  const other = await makeService(join(t.testdir({ other: {} }), 'other'));
  const otherRoots = rootsOf(other);
  const { args, at } = folder(t, {
    wrong: 'another artifact',
    'changed.json': JSON.stringify(
      changed(({ batch }) => {
        batch.root_hash = '00'.repeat(32);
      }),
    ),
    'other.json': JSON.stringify(otherRoots),
  });
  const roots = ['--trust-roots', at('roots.json')];
  const bundle = ['--bundle', at('bundle.json')];
  for (const [name, wrong] of [
    ['artifact', ['verify', at('wrong'), ...bundle, ...roots]],
    ['digest', ['verify', `sha256:${'0'.repeat(64)}`, ...bundle, ...roots]],
    ['bundle', ['verify', DIGEST, '--bundle', at('changed.json'), ...roots]],
    ['trust', ['verify', DIGEST, ...bundle, '--trust-roots', at('other.json')]],
    ['environment', [...args, '--environment', 'test']],
  ] as const) {
    const { code, stdout, stderr } = await runHere(wrong);
    t.match({ code, stderr }, { code: 1, stderr: '' }, name);
    t.match(stdout, /^FAILED /m, name);
    t.match(stdout.trimEnd().split('\n').at(-1), /^Not verified: /, name);
  }
});
