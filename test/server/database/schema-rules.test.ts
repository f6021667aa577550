/** The functions of the database follow the rules of the code. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { SubmissionOutcome } from '../../../src/server/attestations/sequence/sequence-submissions.js';
import { connectPool } from '../../../src/server/database/connect.js';
import { testDatabase } from '../../support/servers/shared-servers.js';

const MAX_LINES = 60;

type SqlFunction = { name: string; lines: number; comment: string };

/** The functions that a schema shows, each with its length and its comment, empty if there is none. */
function findFunctions(schema: string): SqlFunction[] {
  const sections = schema.split(/^(?=CREATE OR REPLACE FUNCTION )/m);
  return sections.slice(1).map((section) => {
    const [, name = '', code = '', rest = ''] =
      /(\w+)(\(.*\n(?:END )?\$function\$;\n)(.*)/s.exec(section) ?? [];
    const [, comment = ''] = /^COMMENT ON FUNCTION \w+\(.*?\) IS '((?:[^']|'')*)';/s.exec(rest) ?? [];
    return { name, lines: code.trimEnd().split('\n').length, comment };
  });
}

const schema = readFileSync(new URL('../../../gen/schema.sql', import.meta.url), 'utf8');
const functions = findFunctions(schema);

t.test(`no function has more than ${MAX_LINES} lines`, async (t) => {
  t.equal(functions.length, schema.match(/^CREATE OR REPLACE FUNCTION /gm)?.length, 'all are found');
  for (const { name, lines } of functions) t.ok(lines <= MAX_LINES, `${name} has ${lines} lines`);
});

t.test('every function has a comment that states its contract and its locks', async (t) => {
  for (const { name, comment } of functions) t.match(comment, /^.{20,}\nLocks: .+\.$/s, name);
});

t.test('long functions and those without a comment are reported', async (t) => {
  const text = (name: string, lines: number, comment: string) =>
    `CREATE OR REPLACE FUNCTION ${name}(a text)\nAS $function$\n${'x;\n'.repeat(lines - 3)}END $function$;\n${comment}\n`;
  const found = findFunctions(
    '-- A header.\n' +
      text('first', 60, '') +
      text('second', 61, "COMMENT ON FUNCTION second(a text) IS 'It''s\nnice.';\n"),
  );
  t.same(found, [
    { name: 'first', lines: 60, comment: '' },
    { name: 'second', lines: 61, comment: "It''s\nnice." },
  ]);
});

t.test('the outcomes of a submission have the same names in the code as in the database', async (t) => {
  const pool = connectPool({
    url: await testDatabase(t),
    name: 'test',
    max: 1,
    statementTimeoutMs: 60_000,
  });
  t.teardown(() => pool.end());
  const rows = await pool<{ name: string }[]>`
    SELECT unnest(enum_range(NULL::submission_outcome))::text AS name`;
  const names = rows.map(({ name }) => name);
  t.same(Object.values(SubmissionOutcome), names);
  t.same(
    Object.keys(SubmissionOutcome),
    names.map((name) => name.toUpperCase()),
  );
});
