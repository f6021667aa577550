/** Debian's registry (distribution 2.8), which has no referrers API, until the test ends. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Test } from 'tap';
import { DOCKER_REGISTRY } from '../foreign/shell/docker-registry.js';
import { serveTokens } from './registry-tokens.js';

/** Who may call it: anyone, who knows USER and PASSWORD, or who has a token of a server that asks for them. */
export type RegistryAccess = 'open' | 'basic' | 'token';

export const USER = 'builder';
export const PASSWORD = 'pass:word';
/** Of the password, with bcrypt. */
const HTPASSWD = `${USER}:$2b$04$gA07jJ0bgMS0q2k1Azuel.xtmBOATkdNJYj0KcXiH8QIUKuzT5F..\n`;

/** Starts one on a free port; returns its name, `127.0.0.1:<port>`. */
export async function startDockerRegistry(
  t: Pick<Test, 'teardown'>,
  access: RegistryAccess = 'open',
  http: object = {},
): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-registry-'));
  await writeFile(join(dir, 'htpasswd'), HTPASSWD);
  const auth = {
    open: undefined,
    basic: { htpasswd: { realm: 'tests', path: join(dir, 'htpasswd') } },
    token:
      access === 'token' ? { token: await serveTokens(t, { user: USER, password: PASSWORD }) } : undefined,
  }[access];
  const config = {
    version: 0.1,
    log: { level: 'info', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(dir, 'data') }, delete: { enabled: true } },
    http: { addr: '127.0.0.1:0', secret: 'tests', ...http },
    ...(auth && { auth }),
  };
  // JSON is YAML.
  await writeFile(join(dir, 'config.yml'), JSON.stringify(config));
  const child = spawn(DOCKER_REGISTRY, ['serve', join(dir, 'config.yml')], {
    env: { PATH: process.env.PATH, OTEL_TRACES_EXPORTER: 'none' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = once(child, 'exit');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await exited;
    await rm(dir, { recursive: true, force: true });
  });
  const lines: string[] = [];
  for await (const line of createInterface(child.stderr)) {
    lines.push(line);
    const [, address] = /listening on ([\d.]+:\d+)/.exec(line) ?? [];
    if (address === undefined) continue;
    child.stderr.resume();
    return address;
  }
  throw new Error(`the registry does not start: ${lines.join('\n')}`);
}
