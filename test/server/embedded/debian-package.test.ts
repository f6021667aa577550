import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { openCacheDir } from '../../../src/server/embedded/cache.js';
import { fetchDebianPackage } from '../../../src/server/embedded/debian-package.js';
import '../../support/foreign/apt.js';
import {
  binDir,
  closedHome,
  findOrdinaryUser,
  startEmbeddedProcess,
} from '../../support/servers/embedded-process.js';

t.test('an unpacked package is kept, and one that does not exist is rejected without leavings', async (t) => {
  const cacheDir = await openCacheDir(join(closedHome(t), 'cache'));
  await t.rejects(fetchDebianPackage('attest-no-such-package', cacheDir), { code: 'not_installed' });
  t.same(readdirSync(cacheDir), ['lock']);
  await t.rejects(fetchDebianPackage('../evil', cacheDir), TypeError);
  await t.rejects(fetchDebianPackage('-oAPT::x=y', cacheDir), TypeError);
  const tree = await fetchDebianPackage('hello', cacheDir);
  t.equal(execFileSync(join(tree, 'usr/bin/hello'), { encoding: 'utf8', env: {} }), 'Hello, world!\n');
  t.notOk(existsSync(join(tree, '.download')));
  t.equal(await fetchDebianPackage('hello', cacheDir), tree);
});

t.test(
  'an ordinary user without the program, its package lists or root gets it, twice at once',
  async (t) => {
    const user = findOrdinaryUser();
    const [home, cacheHome] = [closedHome(t, user), closedHome(t, user)];
    const aptConfig = join(tmpdir(), `attest-apt-${process.pid}.conf`);
    writeFileSync(aptConfig, `Dir::State::lists "${home}/no-lists";\n`, { mode: 0o644 });
    t.teardown(() => execFileSync('rm', ['-f', aptConfig]));
    const env = { HOME: home, APT_CONFIG: aptConfig, PATH: binDir(t, (name) => name !== 'nats-server') };
    const cacheDir = join(cacheHome, 'cache');
    const children = ['one', 'two'].map((name) =>
      startEmbeddedProcess({ dataDir: join(home, name), cacheDir, servers: ['nats'], user, env }),
    );
    for (const child of children) {
      const answer = await child.running();
      t.ok(answer.natsUrl);
      const program = readFileSync(`/proc/${answer.pids[0]}/cmdline`, 'utf8');
      t.ok(program.startsWith(`${cacheDir}/nats-server_`));
    }
    for (const child of children) await child.stop();
    t.same(
      readdirSync(cacheDir).filter((name) => !name.startsWith('nats-server_')),
      ['lock'],
    );
  },
);
