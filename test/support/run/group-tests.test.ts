import t from 'tap';
import { groupTests } from './group-tests.js';

t.test('every test file is in one process, with its neighbours unless it is to be alone', async (t) => {
  const alone = ['docs.test.js', 'fault/kill.test.js', 'server/export/s3.test.js'];
  const others = Array.from({ length: 12 }, (_, i) => `server/rpc/${i + 10}.test.js`);
  const processes = groupTests([...others, ...alone]);
  t.strictSame(processes, [
    ...alone.map((path) => ({ name: path.replace(/\.js$/, ''), paths: [path] })),
    { name: 'group-01.test', paths: others.slice(0, 10) },
    { name: 'group-02.test', paths: others.slice(10) },
  ]);
});
