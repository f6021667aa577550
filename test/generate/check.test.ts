import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { checkBreaking } from '../../src/generate/checks/check-breaking.js';
import { checkGenerated } from '../../src/generate/checks/check-generated.js';
import { findProblem } from '../../src/generate/checks/finding.js';
import { type Check, runChecks } from '../../src/generate/checks/run-checks.js';
import { writeThirdPartyProtos } from '../../src/generate/protos/third-party-protos.js';
import { GIT } from '../support/foreign/git.js';
import { isLong } from '../support/long.js';

const JOBS = 'proto/attestation/jobs/v1/jobs.proto';
const BATCHES = 'proto/attestation/v1/batches.proto';
const IDENTITY = ['-c', 'user.name=Test', '-c', 'user.email=test@example.com', '-c', 'commit.gpgsign=false'];

/** The checkout, whether this runs from its sources or from what was compiled of them. */
function findRoot(): string {
  let root = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(root, 'package.json'))) root = dirname(root);
  return root;
}

const CHECKED_OUT = [
  'proto',
  'test/proto',
  'buf.yaml',
  'buf.gen.yaml',
  'buf.gen.openapi.yaml',
  'test/buf.gen.yaml',
  // What the plugin of the OpenAPI document is made of.
  'src',
  'gen',
  'package.json',
];

/** A copy of this checkout's protos, with all that `buf` needs, and no history. */
function checkout(t: Test): string {
  const root = t.testdir({});
  const source = findRoot();
  for (const path of CHECKED_OUT) {
    cpSync(join(source, path), join(root, path), { recursive: true });
  }
  symlinkSync(join(source, 'node_modules'), join(root, 'node_modules'));
  writeThirdPartyProtos(root);
  return root;
}

function git(root: string, ...args: string[]): void {
  execFileSync(GIT, [...IDENTITY, ...args], { cwd: root, stdio: 'ignore' });
}

function commit(root: string, ...paths: string[]): void {
  git(root, 'add', ...paths);
  git(root, 'commit', '--allow-empty', '-m', 'x');
}

/** Replaces a text that a file must have. */
function edit(root: string, path: string, from: string | RegExp, to: string): void {
  const before = readFileSync(join(root, path), 'utf8');
  const after = before.replace(from, to);
  if (after === before) throw new Error(`${path} does not have ${from}`);
  writeFileSync(join(root, path), after);
}

let scratches = 0;

function breaking(root: string): { problem?: string; note?: string } {
  const scratch = join(root, `scratch-${scratches++}`);
  mkdirSync(scratch);
  return checkBreaking({ root, scratch });
}

t.test('without earlier protos the check of compatibility passes with a note', async (t) => {
  const root = checkout(t);
  t.strictSame(breaking(root), { note: 'no git history to compare with' });
  git(root, 'init', '-q', '-b', 'main');
  t.strictSame(breaking(root), { note: 'no commit to compare with' });
  commit(root, 'buf.gen.yaml');
  t.match(breaking(root), { problem: undefined, note: /^no protos at \w{10} to compare with$/ });
});

t.test('without git the check of compatibility passes with a note', async (t) => {
  const { PATH } = process.env;
  t.teardown(() => Object.assign(process.env, { PATH }));
  process.env.PATH = t.testdir({});
  t.strictSame(breaking(t.testdir({ '.git': {} })), { note: 'no git to read the history with' });
});

t.test('a history that git cannot read is a problem', async (t) => {
  const root = t.testdir({ '.git': 'gitdir: nowhere' });
  t.match(breaking(root).problem, /not a git repository/);
});

t.test('protos are held against the newest commit, or against where work left main', async (t) => {
  const root = checkout(t);
  git(root, 'init', '-q', '-b', 'main');
  commit(root, 'proto', 'buf.yaml');
  t.match(breaking(root), { problem: undefined, note: /^compared with \w{10}$/ });

  edit(root, BATCHES, /^ {2}rpc ListBatches\b/m, '  rpc ListAllBatches');
  t.match(breaking(root).problem, /batches\.proto:.*"ListBatches" on service.* was deleted/, 'not committed');
  git(root, 'checkout', '-q', '-b', 'work');
  commit(root, 'proto');
  commit(root);
  t.match(breaking(root).problem, /"ListBatches"/, 'committed on a branch');
  git(root, 'update-ref', 'refs/remotes/origin/main', 'main');
  git(root, 'branch', '-q', '-f', 'main', 'work');
  t.match(
    breaking(root).problem,
    /"ListBatches"/,
    'committed on a main that is ahead of where it was cloned',
  );
  git(root, 'update-ref', 'refs/remotes/origin/main', 'main');
  t.equal(breaking(root).problem, undefined, 'main itself');
});

t.test('the source representation of a job may change, its wire format may not', async (t) => {
  const root = checkout(t);
  git(root, 'init', '-q', '-b', 'main');
  commit(root, 'proto', 'buf.yaml');
  const original = readFileSync(join(root, JOBS), 'utf8');
  const cases: [from: string | RegExp, to: string, problem: RegExp | undefined][] = [
    ['string witness = 2;', 'string witness_name = 2;', undefined],
    ['string witness = 2;', 'reserved 2;', undefined],
    ['string witness = 2;', '', /"witness" on message "WitnessJob" was deleted without reserving/],
    ['string witness = 2;', 'int64 witness = 2;', /changed type from "string" to "int64"/],
    [
      /(SettleJob settle = 3;)\n([^}]*)\}/,
      '$2}\n$1',
      /"settle" on message "Job" moved from inside to outside a oneof/,
    ],
  ];
  for (const [from, to, problem] of cases) {
    writeFileSync(join(root, JOBS), original);
    edit(root, JOBS, from, to);
    const found = breaking(root).problem;
    if (problem === undefined) t.equal(found, undefined, to);
    else t.match(found, problem, to || 'removed');
  }
});

async function assertNamed(t: Test): Promise<void> {
  const root = checkout(t);
  for (const folder of ['gen', 'test/gen'])
    cpSync(join(findRoot(), folder), join(root, folder), { recursive: true });
  const scratch = join(root, 'scratch');
  const check = () => {
    rmSync(scratch, { recursive: true, force: true });
    mkdirSync(scratch);
    return checkGenerated({ root, scratch });
  };
  const changed = join(root, 'gen/attestation/v1/batches_pb.ts');
  appendFileSync(changed, '\n');
  const text = readFileSync(changed, 'utf8');
  rmSync(join(root, 'gen/attestation/jobs'), { recursive: true });
  edit(
    root,
    'src/contracts/Anchor.sol',
    'emit Anchored(digest, msg.sender)',
    'emit Anchored(digest, tx.origin)',
  );
  writeFileSync(join(root, 'test/gen/old_pb.ts'), '');
  edit(
    root,
    'src/server/database/migrations/0001_initial.sql',
    'CREATE TABLE worker (',
    'CREATE TABLE laborer (',
  );
  t.strictSame(check(), {
    problem: [
      'gen/attestation/jobs/v1/jobs_pb.ts is missing',
      'gen/attestation/v1/batches_pb.ts differs',
      'gen/contracts/anchor.ts differs',
      'gen/schema.sql differs',
      'test/gen/old_pb.ts is left over',
      'run "npm run generate" and commit what it writes',
    ].join('\n'),
  });
  t.equal(readFileSync(changed, 'utf8'), text);
  writeFileSync(join(root, BATCHES), 'syntax = "proto4";');
  t.match(check().problem, /batches\.proto:1:/, 'protos that do not compile');
}

// It generates everything twice, which `npm test` does once for its own check.
if (isLong) t.test('generated code that differs from its sources is named and left unchanged', assertNamed);

t.test('third-party protos are written only where they are missing or differ', async (t) => {
  const root = t.testdir({});
  const path = join(root, '.protos/google/api/http.proto');
  writeThirdPartyProtos(root);
  const { ino, mtimeMs } = statSync(path);
  writeThirdPartyProtos(root);
  t.match(statSync(path), { ino, mtimeMs }, 'untouched');
  appendFileSync(path, 'x');
  writeFileSync(join(root, '.protos/old.proto'), '');
  writeThirdPartyProtos(root);
  t.match(readFileSync(path, 'utf8'), /message HttpRule \{[\s\S]*\}\s*$/);
  t.notOk(existsSync(join(root, '.protos/old.proto')));
});

t.test('every check is run and reported, even after others failed', async (t) => {
  const printed: string[] = [];
  const scratches: string[] = [];
  const checks: Check[] = [
    { name: 'a holds', run: () => ({ problem: 'one\ntwo' }) },
    { name: 'b holds', run: () => ({ problem: findProblem('.', 'no-such-program', []) }) },
    {
      name: 'c holds',
      run: (scratch) => {
        scratches.push(scratch);
        return { note: 'noted' };
      },
    },
    {
      name: 'd holds',
      run: (scratch) => {
        scratches.push(scratch);
        return {};
      },
    },
  ];
  const passed = runChecks(checks, (text) => printed.push(text));
  t.equal(passed, false);
  t.match(printed, [
    'FAILED a holds',
    '       one\n       two',
    'FAILED b holds',
    /^ {7}Error: .*no-such-program/,
    'ok     c holds (noted)',
    'ok     d holds',
  ]);
  t.equal(new Set(scratches).size, 2);
  for (const scratch of scratches) t.notOk(existsSync(scratch), 'the folder of a check goes with it');
  t.equal(
    runChecks([{ name: 'a', run: () => ({}) }], () => {}),
    true,
  );
});
