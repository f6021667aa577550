/** The rules and lines of docs/policies.md, each for a result that passed and for what it must not admit. */
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Test } from 'tap';
import { codeBlocks } from '../../support/source/pages.js';
import { startGoRegistry } from '../image-checks.js';
import { accepting, type Row, refusing } from '../rows.js';
import type { Scene } from '../scene.js';
import { CHECKOUT, FOLDER, paste } from '../tools.js';
import { openProofs, PROOFS, type Proof, type ProofName, type Proofs } from './proofs.js';
import { conformaRules } from './sources.js';

const ISSUER = 'https://token.actions.githubusercontent.com';
const PAGE = join(CHECKOUT, 'docs/policies.md');

/** A program that decides: the text that finds its lines, and what it prints of each proof that it is given. */
type Engine = {
  readonly tool: string;
  readonly lines: string;
  readonly says: Readonly<Partial<Record<ProofName, RegExp>>>;
  /** Another file of rules, in the place of that which the lines name. */
  readonly instead?: readonly [string, string];
};

const BY_RULE = {
  failed: /the tests did not pass/,
  foreign: /not by acme\/app/,
  keyed: /not by acme\/app/,
  private: /not a test result/,
  edited: /the proof is not verified/,
  cut: /the proof is not verified/,
};
const BY_JQ = {
  passed: /true/,
  failed: /false/,
  foreign: /false/,
  keyed: /false/,
  private: /false/,
  edited: /false/,
  cut: /false/,
};
const ENGINES: readonly Engine[] = [
  { tool: 'opa', lines: '--data release.rego', says: { passed: /^$/, ...BY_RULE } },
  {
    tool: 'conftest',
    lines: 'conftest test',
    says: { passed: / passed, 0 warnings, 0 failures/, ...BY_RULE },
  },
  { tool: 'kyverno-json', lines: 'kyverno-json scan', says: BY_JQ },
  {
    tool: 'conforma',
    lines: 'conforma.rego',
    says: {
      passed: /^$/,
      failed: /has a failed result/,
      foreign: /no verified test result/,
      keyed: /no verified test result/,
      edited: /no verified test result/,
      cut: /no verified test result/,
    },
  },
  ...['release-cosign.rego', 'release.cue'].map(
    (file): Engine => ({
      tool: `cosign, ${file}`,
      lines: 'cosign verify-attestation',
      instead: ['release-cosign.rego', file],
      says: {
        passed: /^Verification for /m,
        failed: /1 validation errors/,
        foreign: /1 validation errors/,
        keyed: /1 validation errors/,
        edited: /no matching attestations/,
      },
    }),
  ),
  {
    tool: 'attestation-verifier',
    lines: 'attestation-verifier',
    says: {
      passed: /Verification successful!/,
      failed: /predicate\.result == 'PASSED'/,
      foreign: /identity\.subject/,
      keyed: /identity\.issuer/,
      private: /threshold not met/,
      edited: /threshold not met/,
      cut: /unexpected end of JSON input/,
    },
  },
];

/** Every engine admits the release whose tests passed, and no other. */
export async function checkPolicies({ dir }: Pick<Scene, 'dir'>): Promise<Row[]> {
  const stops: (() => unknown)[] = [];
  try {
    const owner = { teardown: (stop: () => unknown) => void stops.unshift(stop) } as Pick<Test, 'teardown'>;
    const host = await startGoRegistry(owner);
    const [line = 'false'] = await codeBlocks(PAGE, 'console');
    const proofs = await openProofs(owner, join(dir, 'policies'), host, line);
    for (const name of PROOFS) await writeRules(proofs, proofs.of[name]);
    const rows: Row[] = [];
    for (const engine of ENGINES) rows.push(...(await judge(engine, proofs)));
    return rows;
  } finally {
    for (const stop of stops) await stop();
  }
}

/** Writes the page's files of rules, each named in its first line, beside the proof. */
async function writeRules(proofs: Proofs, { dir }: Proof): Promise<void> {
  for (const language of ['rego', 'yaml', 'cue']) {
    for (const block of await codeBlocks(PAGE, language)) {
      const [, name] = /^(?:#|\/\/) (\S+)$/m.exec(block) ?? [];
      if (name === undefined) throw new Error(`docs/policies.md has a block of ${language} without a name`);
      await writeFile(join(dir, name), named(block, proofs));
    }
  }
  await symlink(conformaRules(FOLDER), join(dir, 'policy'));
}

/** The text, about this project and issuer. */
function named(text: string, { project, issuer }: Proofs): string {
  return text.replaceAll('prj_…', project).replaceAll(ISSUER, issuer);
}

async function judge({ tool, lines, says, instead }: Engine, proofs: Proofs): Promise<Row[]> {
  const script = (await codeBlocks(PAGE, 'sh')).find((block) => block.includes(lines));
  if (script === undefined) throw new Error(`docs/policies.md has no lines with ${lines}`);
  const rows: Row[] = [];
  for (const name of PROOFS) {
    const pattern = says[name];
    if (pattern === undefined) continue;
    const { dir, image } = proofs.of[name];
    const changed = named(script, proofs).replace(...(instead ?? ['', '']));
    // The engine alone decides: a shell without these options goes on where verification fails.
    const said = await paste(`set +e +o pipefail\n${changed}`, dir, { IMAGE: image });
    const what = `a policy, ${WHAT[name]}`;
    rows.push(
      name === 'passed' ? accepting(tool, what, said, [pattern]) : refusing(tool, what, said, [pattern]),
    );
  }
  return rows;
}

const WHAT: Readonly<Record<ProofName, string>> = {
  passed: 'PASSED',
  failed: 'FAILED',
  foreign: 'PASSED, by another repository',
  keyed: 'PASSED, by a stored key',
  private: 'a private statement',
  edited: 'FAILED, edited to PASSED',
  cut: 'a bundle cut off',
};
