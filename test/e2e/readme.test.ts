/** The shell lines of README, pasted into a shell. Its program is run by package.test.ts. */
import { execFile } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { startApp } from '../support/app.js';
import { PROGRAM } from '../support/calling/run-cli.js';
import { newKey } from '../support/calling/test-keys.js';
import { codeBlocks } from '../support/source/pages.js';
import '../support/foreign/openssl.js';
import '../support/foreign/curl.js';

const [, submit = '', fetchBundle = '', command = ''] = await codeBlocks('README.md', 'sh');

t.test('the lines for curl and for attest submit, fetch the bundle and verify it', async (t) => {
  const app = await startApp(t);
  const { key } = await newKey(app);
  const attest = `#!/bin/sh\nexec ${[process.execPath, ...PROGRAM].map((part) => `"${part}"`).join(' ')} "$@"\n`;
  const dir = t.testdir({ 'report.json': '{}', bin: { attest } });
  chmodSync(join(dir, 'bin/attest'), 0o755);
  const env = {
    PATH: [join(dir, 'bin'), process.env.PATH].join(delimiter),
    ATTEST_URL: app.baseUrl,
    ATTEST_API_KEY: key,
  };
  const paste = async (lines: string) =>
    (await promisify(execFile)('bash', ['-e', '-o', 'pipefail', '-c', lines], { cwd: dir, env })).stdout;

  const own = submit.replace('http://localhost:8080', app.baseUrl).replace('svc_live_…', key);
  const { id, status } = JSON.parse(await paste(own));
  t.match(id, /^sub_/);
  t.equal(status, 'queued');
  await paste(fetchBundle.replace('sub_…', id));
  const verify = 'attest verify report.json --bundle bundle.json --trust-roots trust_roots.json';
  t.match(await paste(verify), new RegExp(`attested under ${id}`));
  t.match(await paste(command), /This artifact was attested under sub_/);
});
