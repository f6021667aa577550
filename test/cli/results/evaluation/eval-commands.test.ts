/** `attest eval show`, `list` and `sample`. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { runHere, runProcess } from '../../../support/calling/run-cli.js';
import { readParts, SAMPLES, writeLog } from './reading.js';

const LOG = join(SAMPLES, 'inspect_ai/arithmetic.eval');

t.test('the metadata of a log, its paths, and a sample with the bytes that its set has', async (t) => {
  const { metadata, parts } = await readParts(LOG);
  const shown = await runHere(['eval', 'show', LOG]);
  t.match(shown, { code: 0, stderr: '' });
  t.strictSame(JSON.parse(shown.stdout), metadata);
  t.equal((await runHere(['eval', 'show', LOG, '--json'])).stdout, `${JSON.stringify(metadata)}\n`);
  const listed = await runHere(['eval', 'list', LOG]);
  t.strictSame(listed.stdout.trimEnd().split('\n'), [...parts.keys()]);
  const { stdout } = await runHere(['eval', 'list', LOG, '--json']);
  t.strictSame(JSON.parse(stdout), { file: LOG, paths: [...parts.keys()] });
  for (const path of ['samples/2_epoch_1.json', 'arithmetic.eval']) {
    const output = join(t.testdir(), 'sample.json');
    t.match(await runProcess(['eval', 'sample', LOG, path, '-o', output]), {
      code: 0,
      stdout: '',
      stderr: '',
    });
    t.strictSame(readFileSync(output), parts.get(path));
  }
  const printed = await runHere(['eval', 'sample', LOG, 'samples/2_epoch_1.json']);
  t.equal(printed.stdout, parts.get('samples/2_epoch_1.json')?.toString());
});

t.test(
  'a sample that is not there, a file in the way and a file that is no log are errors with exit code 2',
  async (t) => {
    const missing = await runHere(['eval', 'sample', LOG, 'samples/3_epoch_1.json']);
    t.match(missing, {
      code: 2,
      stdout: '',
      stderr: /has no samples\/3_epoch_1\.json: attest eval list shows/,
    });
    const there = writeLog(t, 'there', 'x');
    const written = await runHere(['eval', 'sample', LOG, 'samples/2_epoch_1.json', '-o', there]);
    t.match(written, { code: 2, stderr: /there cannot be written: EEXIST/ });
    t.equal(readFileSync(there, 'utf8'), 'x');
    t.match(await runHere(['eval', 'show', there]), {
      code: 2,
      stdout: '',
      stderr: /truncated or not JSON at byte 1/,
    });
    const nowhere = join(t.testdir(), 'nowhere');
    t.match(await runHere(['eval', 'list', nowhere]), { code: 2, stderr: /nowhere cannot be read: ENOENT/ });
    const log = readFileSync(LOG);
    const at = log.indexOf('samples/2_epoch_1.json') + 300;
    log[at] = (log[at] ?? 0) ^ 1;
    const damaged = writeLog(t, 'damaged.eval', log);
    const asked = ['eval', 'sample', damaged, 'samples/2_epoch_1.json', '-o', nowhere];
    t.match(await runHere(asked), { code: 2, stderr: /the log is damaged/ });
    t.notOk(existsSync(nowhere), 'nothing is left of it');
  },
);
