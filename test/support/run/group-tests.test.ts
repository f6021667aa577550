import t from 'tap';
import { groupTests } from './group-tests.js';

t.test('every test file is in one process, with its neighbours unless it is to be alone', async (t) => {
  const alone = ['docs.test.js', 'fault/kill.test.js', 'server/exports/destinations/s3.test.js'];
  const others = Array.from({ length: 12 }, (_, i) => `server/rpc/${i + 10}.test.js`);
  const processes = groupTests([...others, ...alone]);
  t.strictSame(processes, [
    { name: '001/server/rpc/10.test', paths: others.slice(0, 10) },
    { name: '002/server/rpc/20.test', paths: others.slice(10) },
    { name: '003/docs.test', paths: ['docs.test.js'] },
    { name: '004/fault/kill.test', paths: ['fault/kill.test.js'] },
    { name: '005/server/exports/destinations/s3.test', paths: ['server/exports/destinations/s3.test.js'] },
  ]);
});

t.test('the longest process is first; a new file counts as a usual one', async (t) => {
  const grouped = Array.from({ length: 11 }, (_, i) => `server/rpc/${i + 10}.test.js`);
  const ms = new Map([
    ['fault/quick.test.js', 1],
    ['fault/slow.test.js', 99],
    ...grouped.slice(0, 10).map((path): [string, number] => [path, 5]),
  ]);
  const processes = groupTests(['fault/quick.test.js', 'fault/slow.test.js', ...grouped], (path) =>
    ms.get(path),
  );
  t.strictSame(
    processes.map(({ name }) => name),
    ['001/server/rpc/20.test', '002/fault/slow.test', '003/server/rpc/10.test', '004/fault/quick.test'],
  );
});
