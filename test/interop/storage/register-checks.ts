/** The checkpoint register in a bucket of versitygw: our tests of two databases that share one, over a store that is not ours. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../command.js';
import { accepting, type Row } from '../rows.js';
import { CHECKOUT } from '../tools.js';
import { startVersitygw, VERSITYGW } from './versitygw.js';

const TEST = 'test/server/log/register/two-databases.test.ts';

/** The tests, as one row. */
export async function checkRegister({ dir: within }: { dir: string }): Promise<Row[]> {
  const stops: (() => unknown)[] = [];
  const dir = join(within, 'register');
  await mkdir(dir);
  try {
    const url = await startVersitygw(dir, { teardown: (stop) => void stops.push(stop) });
    const runTests = join(CHECKOUT, 'dist/test/support/run/run-one.js');
    const said = await run(process.execPath, [runTests, TEST], { cwd: CHECKOUT, env: { TEST_S3_URL: url } });
    return [
      accepting(VERSITYGW, 'two databases and one register', said, [
        /^[1-9]\d* passed, 0 failed, 0 skipped$/m,
      ]),
    ];
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}
