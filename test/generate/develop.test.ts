import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { develop } from '../../src/generate/develop/develop.js';
import { until } from '../support/until.js';

/** Takes over the source, unless it is broken. */
const BUILD = `
  const [source, built] = process.argv.slice(1);
  const text = fs.readFileSync(source, 'utf8');
  if (text === 'broken') process.exit(1);
  fs.writeFileSync(built, text);`;

/** Writes down when it starts and ends, and what it was built of. */
const SERVE = `
  const [built, journal] = process.argv.slice(1);
  const text = fs.readFileSync(built, 'utf8');
  process.on('SIGTERM', () => {
    fs.appendFileSync(journal, 'stopped ' + text + '\\n');
    process.exit();
  });
  fs.appendFileSync(journal, 'started ' + text + '\\n');
  setInterval(() => {}, 1000);`;

t.test('a change is built and the service restarted, unless the build fails', async (t) => {
  const dir = t.testdir({ src: { 'a.txt': '1' }, journal: '' });
  const [source, built, journal] = ['src/a.txt', 'built', 'journal'].map((path) => join(dir, path)) as [
    string,
    string,
    string,
  ];
  const stop = new AbortController();
  t.teardown(() => stop.abort());
  const printed: string[] = [];
  const ended = develop({
    folders: [join(dir, 'src')],
    build: [process.execPath, '-e', BUILD, source, built],
    serve: [process.execPath, '-e', SERVE, built, journal],
    stdio: 'ignore',
    print: (line) => printed.push(line),
    stop: stop.signal,
    force: new AbortController().signal,
  });
  const expected: string[] = [];
  const expect = async (...lines: string[]) => {
    expected.push(...lines);
    const text = expected.map((line) => `${line}\n`).join('');
    await until(`the journal is\n${text}`, () => readFileSync(journal, 'utf8') === text);
    t.pass(lines.join(', '));
  };
  await expect('started 1');
  writeFileSync(source, '2');
  await expect('stopped 1', 'started 2');
  writeFileSync(source, 'broken');
  await until('the build fails', () => printed.includes('the build failed: the service is not restarted'));
  writeFileSync(join(dir, 'src/new.txt'), '3');
  renameSync(join(dir, 'src/new.txt'), source);
  await expect('stopped 2', 'started 3');
  mkdirSync(join(dir, 'src/inner'));
  await expect('stopped 3', 'started 3');
  writeFileSync(join(dir, 'src/inner/b.txt'), 'in a new folder');
  await expect('stopped 3', 'started 3');
  stop.abort();
  await ended;
  t.equal(readFileSync(journal, 'utf8').split('\n').at(-2), 'stopped 3');
});

t.test('it can be stopped while it builds', async (t) => {
  const dir = t.testdir({ src: {} });
  const stop = new AbortController();
  const ended = develop({
    folders: [join(dir, 'src')],
    build: [process.execPath, '-e', `fs.writeFileSync('${dir}/building', ''); setInterval(() => {}, 1000)`],
    serve: [process.execPath, '-e', `fs.writeFileSync('${dir}/serving', '')`],
    stdio: 'ignore',
    print: () => {},
    stop: stop.signal,
    force: new AbortController().signal,
  });
  await until('it builds', () => readFileSync(join(dir, 'building'), 'utf8') === '');
  stop.abort();
  await ended;
  t.throws(() => readFileSync(join(dir, 'serving')), { code: 'ENOENT' });
});

t.test('it can be ended at once, even if the service ignores SIGTERM', async (t) => {
  const dir = t.testdir({ src: {} });
  const started = join(dir, 'started');
  const ignore = "process.on('SIGTERM', () => fs.appendFileSync(process.argv[1], 'stop '));";
  const [stop, force] = [new AbortController(), new AbortController()];
  const printed: string[] = [];
  const ended = develop({
    folders: [join(dir, 'src')],
    build: [process.execPath, '-e', ''],
    serve: [
      process.execPath,
      '-e',
      `${ignore} fs.writeFileSync(process.argv[1], 'started '); setInterval(() => {}, 1000)`,
      started,
    ],
    stdio: 'ignore',
    print: (line) => printed.push(line),
    stop: stop.signal,
    force: force.signal,
  });
  const writes = (text: string) =>
    until(text, () => existsSync(started) && readFileSync(started, 'utf8') === text);
  await writes('started ');
  stop.abort();
  await writes('started stop ');
  force.abort();
  await ended;
  t.strictSame(printed, ['the service ended with SIGKILL']);
  t.match(readFileSync(started, 'utf8'), /^started stop stop $/, 'it was asked twice before');
});
