import t from 'tap';
import { type Row, tableOf } from './rows.js';
import { chooseChecks, runAll } from './running.js';

const row = (tool: string): Row => ({ tool, what: 'a file', does: 'accepts', isRight: true, said: '' });

t.test('a check that throws loses its own row only', async (t) => {
  async function checkFirst() {
    return [row('one'), row('two')];
  }
  async function checkBroken(): Promise<Row[]> {
    throw new Error('the port is taken');
  }
  async function checkLast() {
    return [row('three')];
  }
  const rows = await runAll([checkFirst, checkBroken, checkLast], {});
  t.strictSame(
    rows.map(({ tool, isRight }) => [tool, isRight]),
    [
      ['one', true],
      ['two', true],
      ['checkBroken', false],
      ['three', true],
    ],
  );
  const table = tableOf(rows);
  t.match(table, /^WRONG {2}checkBroken {2}throws/m);
  t.match(table, /the port is taken/);
  t.match(table, /3 of 4 as they should be$/);
});

t.test('checks run in turn, each with the scene', async (t) => {
  const seen: string[] = [];
  const checking = (name: string) => async (scene: { dir: string }) => {
    seen.push(`${name} of ${scene.dir}`);
    return [];
  };
  t.strictSame(await runAll([checking('one'), checking('two')], { dir: '/x' }), []);
  t.strictSame(seen, ['one of /x', 'two of /x']);
});

t.test('checks are chosen by their names, in their own order', async (t) => {
  const checkLast = async () => [];
  const checkStoredLog = async () => [];
  const checks = [checkStoredLog, checkLast];
  t.strictSame(chooseChecks(checks, []), checks);
  t.strictSame(chooseChecks(checks, ['last', 'stored-log']), checks);
  t.strictSame(chooseChecks(checks, ['stored-log']), [checkStoredLog]);
  t.throws(() => chooseChecks(checks, ['first']), /there is no check first; there are stored-log, last$/);
});
