/** Public statements with an identity, and their forgeries. */
import { writeFile } from 'node:fs/promises';
import t from 'tap';
import { ARTIFACT } from '../../proof/sample.js';
import { FORGERIES } from '../../proof/verify/forgeries/forgeries.js';
import { mine, SECOND_ARTIFACT, STATED } from '../../proof/verify/public-sample.js';
import { good } from '../../proof/verifying.js';
import { runHere } from '../../support/calling/run-cli.js';
import { folder } from './artifact-folder.js';

t.test(
  'a forged public statement ends with exit code 1, and nothing of it is printed as proven',
  async (t) => {
    for (const { what, bundle, artifact = ARTIFACT } of FORGERIES) {
      const { args, at } = folder(t, { 'bundle.json': JSON.stringify(bundle) });
      await writeFile(at('artifact'), artifact);
      const { code, stdout } = await runHere([...args, '--json']);
      t.equal(code, 1, what);
      t.match(
        JSON.parse(stdout),
        { verdict: 'not_verified', verified: undefined, statement: undefined },
        what,
      );
    }
  },
);

t.test('what a public statement proves is printed, and its identity can be required', async (t) => {
  const { args, at } = folder(t, { 'bundle.json': JSON.stringify(mine) });
  const { code, stdout } = await runHere(args);
  t.match(
    { code, stdout },
    { code: 0, stdout: /submitted by repo:acme\/app:ref:refs\/heads\/main of https:/ },
  );
  t.match(
    stdout,
    /\nIt states https:\/\/in-toto.io\/attestation\/test-result\/v0.1: \{.*"result":"FAILED"\}\n/,
  );
  await writeFile(at('artifact'), SECOND_ARTIFACT);
  const json = await runHere([
    ...args,
    '--json',
    '--identity',
    'repo:acme/app:*',
    '--issuer',
    STATED.identity.issuer,
  ]);
  t.equal(json.code, 0);
  t.match(JSON.parse(json.stdout), {
    statement: { artifact_name: STATED.artifactName },
    verified: {
      identity: STATED.identity,
      predicate_type: STATED.predicateType,
      predicate: STATED.predicate,
      subjects: [{ name: STATED.artifactName }, STATED.otherSubjects[0]],
    },
  });
  const cases: [flags: string[], code: number, stdout: RegExp][] = [
    [['--identity', 'repo:acme/app'], 1, /not repo:acme\/app of any issuer/],
    [['--issuer', 'https://gitlab.com'], 1, /not a subject of https:\/\/gitlab.com/],
    [['--metadata', JSON.stringify({ schema: 'x', ...STATED.predicate })], 0, /existed no later/],
    [['--metadata', '{"schema":"x","result":"PASSED"}'], 1, /the metadata is not what was attested/],
  ];
  for (const [flags, code, stdout] of cases) t.match(await runHere([...args, ...flags]), { code, stdout });
  const stored = folder(t, { 'bundle.json': JSON.stringify(good) });
  t.match(await runHere([...stored.args, '--identity', '*']), { code: 1, stdout: /names no identity/ });
});
