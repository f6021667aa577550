/** `attest up` in a process of its own, as a newcomer starts it. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { PROGRAM } from '../calling/run-cli.js';

/** A running service; `stop` ends it as Ctrl-C does and throws unless it ends well. */
export type Up = { verifyUrl: string; baseUrl: string; stop: () => Promise<void> };

/** Starts the service over a data directory, on free ports; resolves when it is ready. */
export async function startUp(dataDir: string, env: NodeJS.ProcessEnv = {}): Promise<Up> {
  const args = [...PROGRAM, 'up', '--json', '--port', '0', '--ops-port', '0', '--data-dir', dataDir];
  const service = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, LOG_LEVEL: 'warn', ...env },
  });
  const ended = once(service, 'exit').then(([code]) =>
    Promise.reject(new Error(`the service ended with ${code}`)),
  );
  const [line] = await Promise.race([once(createInterface({ input: service.stdout }), 'line'), ended]);
  ended.catch(() => {});
  const { base_url: baseUrl, verify_url: verifyUrl } = JSON.parse(line);
  const stop = async () => {
    const stopped = once(service, 'exit');
    service.kill('SIGINT');
    const [code] = await stopped;
    if (code !== 0) throw new Error(`the service ended with ${code} when it was stopped`);
  };
  return { baseUrl, verifyUrl, stop };
}

/** Runs a command of the program; throws when it fails. @returns what it printed */
export function attest(...args: string[]): string {
  const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit'];
  return execFileSync(process.execPath, [...PROGRAM, ...args], { encoding: 'utf8', stdio });
}
