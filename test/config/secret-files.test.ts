/** Secrets in files: `<NAME>_FILE` in place of `<NAME>`. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Environment } from '../../gen/attestation/v1/environment_pb.js';
import { readAdminConfig, readClientConfig } from '../../src/config/client-config.js';
import { readConfig } from '../../src/config/config.js';
import { ConfigError, type Env } from '../../src/config/settings.js';
import { createApiKey } from '../../src/server/keys/api-key.js';
import { SERVER, server } from './samples.js';

const ATTEST_URL = 'https://attest.example.com';
const WITNESS = { name: 'chain', kind: 'evm', rpc_url: 'https://h', chain_id: 1, max_fee_gwei: 1 };
const WITNESSES = JSON.stringify([{ ...WITNESS, contract: `0x${'ab'.repeat(20)}` }]);

const readServer = (env: Env) => readConfig(env, { process: 'api' });
const readClient = (env: Env) =>
  readClientConfig({ ...env, ATTEST_URL }, 'live', { isNamed: false, find: () => undefined });

/** Each setting that may be in a file, with a value and what reads it. */
const SECRETS: [name: string, value: string, read: (env: Env) => unknown][] = [
  ['DATABASE_URL', SERVER.DATABASE_URL, (env) => readServer(env).databaseUrl],
  ['DATABASE_READ_URL', SERVER.DATABASE_URL, (env) => readServer(env).databaseReadUrl],
  ['NATS_URL', SERVER.NATS_URL, (env) => readServer(env).natsUrl],
  ['SECRET_KEY', SERVER.SECRET_KEY, (env) => readServer(env).secrets.secretKeys[0].key.export()],
  ['ADMIN_TOKEN', SERVER.ADMIN_TOKEN, (env) => readServer(env).secrets.adminToken],
  ['CHECKPOINT_REGISTER', '/var/lib/register', (env) => readServer(env).checkpointRegister],
  ['LOG_STORAGE', '/var/lib/log', (env) => readServer(env).logStorage],
  ['EVM_PRIVATE_KEY', randomBytes(32).toString('hex'), (env) => readServer({ ...env, WITNESSES }).witnesses],
  ['ATTEST_API_KEY', createApiKey(Environment.LIVE, randomBytes), (env) => readClient(env).apiKey],
  ['ATTEST_ID_TOKEN', 'head.body.signature', (env) => readClient(env).token],
  ['ATTEST_ADMIN_TOKEN', SERVER.ADMIN_TOKEN, (env) => readAdminConfig({ ...env, ATTEST_URL }).adminToken],
];

/** A folder, the settings that a server needs beside one, and what writes a file of the folder and returns its path. */
function scene(t: Test) {
  const { dir, ...all } = server(t);
  const without = (name: string): Env => ({ ...all, DATA_DIR: dir, [name]: undefined });
  const write = (content: string | Uint8Array) => {
    const path = join(dir, `secret-${randomBytes(8).toString('hex')}`);
    writeFileSync(path, content);
    return path;
  };
  return { dir, without, write };
}

function problemOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return '';
}

t.test('a secret in a file is the same as one in the environment', async (t) => {
  const { without, write } = scene(t);
  for (const [name, value, read] of SECRETS) {
    const wanted = read({ ...without(name), [name]: value });
    t.ok(wanted, name);
    for (const [what, content] of Object.entries({
      'without a line break': value,
      'with one': `${value}\n`,
      'of Windows': `\uFEFF${value}\r\n`,
    })) {
      t.same(read({ ...without(name), [`${name}_FILE`]: write(content) }), wanted, `${name} ${what}`);
    }
    const empty = { ...without(name), [name]: value, [`${name}_FILE`]: '' };
    t.same(read(empty), wanted, `${name}_FILE, empty, is not set`);
  }
});

t.test('a setting and its file at once are an error', async (t) => {
  const { without, write } = scene(t);
  for (const [name, value, read] of SECRETS) {
    const both = { ...without(name), [name]: value, [`${name}_FILE`]: write(value) };
    const said = `  ${name} is set, and ${name}_FILE, too, expected one of the two`;
    t.equal(problemOf(() => read(both)).split('\n')[1], said);
  }
});

t.test('a file that has no secret is an error that names the setting', async (t) => {
  const { dir, without, write } = scene(t);
  const pipe = join(dir, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const wrong: [path: string, reason: string][] = [
    [join(dir, 'missing'), 'the file cannot be read: ENOENT'],
    [join(dir, 'a\0b'), 'the file cannot be read: ERR_INVALID_ARG_VALUE'],
    [join(write('x'), 'below'), 'the file cannot be read: ENOTDIR'],
    [dir, 'the file is a folder, pipe or device'],
    [pipe, 'the file is a folder, pipe or device'],
    ['/dev/zero', 'the file is a folder, pipe or device'],
    [write(''), 'the file is empty'],
    [write('\n'), 'the file is empty'],
    [write('x'.repeat(1024 * 1024 + 1)), 'the file is larger than 1 MiB'],
  ];
  for (const [name, , read] of SECRETS) {
    for (const [path, reason] of wrong) {
      const problem = problemOf(() => read({ ...without(name), [`${name}_FILE`]: path }));
      t.match(problem, `  ${name}_FILE is wrong (${reason}), expected the path of a file with `);
    }
  }
});

t.test('no error shows the content of a file, nor a secret in place of its path', async (t) => {
  const { without, write } = scene(t);
  for (const [name, value, read] of SECRETS) {
    for (const path of [write(`TOPSECRET\n${value}\n\n`), write(Buffer.from([0xff, 0xfe, 0])), value]) {
      const problem = problemOf(() => read({ ...without(name), [`${name}_FILE`]: path }));
      if (!['CHECKPOINT_REGISTER', 'LOG_STORAGE'].includes(name))
        t.match(problem, `${name}_FILE is wrong`, path);
      t.notMatch(problem, 'TOPSECRET');
      if (path === value) t.notOk(problem.includes(value), name);
    }
  }
});

t.test('settings that are no secrets, or name files, have no file of their own', async (t) => {
  const { without, write } = scene(t);
  const env = {
    ...without('PORT'),
    PORT_FILE: write('1'),
    BASE_URL_FILE: write('https://a'),
    DSSE_KEY_FILE_FILE: 'x',
  };
  const { port, baseUrl } = readServer(env);
  t.strictSame({ port, baseUrl }, { port: 8080, baseUrl: undefined });
});
