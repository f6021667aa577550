/** `attest signer` as a process of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PROGRAM } from '../../calling/run-cli.js';

export type SignerProcess = {
  socketPath: string;
  opsUrl: string;
  /** The setting of a key: `socket:<path>#<name>`. */
  setting(key: string): string;
  /** The lines of its log so far, parsed. */
  lines: Record<string, unknown>[];
  /** Starts it again, after it has ended. */
  start(): Promise<void>;
  /** SIGKILL; waits for its end. */
  kill(): Promise<void>;
  /** SIGTERM; returns its exit code. */
  stop(): Promise<number | null>;
};

/** Starts one over a configuration, with `env` in its environment; it is killed when the test ends. */
export async function startSignerProcess(
  test: { teardown(stop: () => Promise<unknown>): void },
  config: object,
  env: Record<string, string> = {},
): Promise<SignerProcess> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-signer-'));
  const socketPath = join(dir, 'signer.sock');
  const settings = {
    PATH: process.env.PATH,
    OPS_PORT: '0',
    DATA_DIR: dir,
    SIGNER_CONFIG: JSON.stringify(config),
    SIGNER_SOCKET: socketPath,
    ...env,
  };
  let stop: (signal: NodeJS.Signals) => Promise<number | null>;
  const made: SignerProcess = {
    socketPath,
    opsUrl: '',
    setting: (key) => `socket:${socketPath}#${key}`,
    lines: [],
    start: async () => {
      const child = spawn(process.execPath, [...PROGRAM, 'signer', '--json'], {
        env: settings,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const ended = once(child, 'close') as Promise<[number | null]>;
      stop = async (signal) => {
        if (child.exitCode === null && child.signalCode === null) child.kill(signal);
        return (await ended)[0];
      };
      let said = '';
      child.stderr.on('data', (chunk: Buffer) => {
        said += chunk.toString();
      });
      createInterface({ input: child.stderr }).on('line', (line) => {
        if (line.startsWith('{')) made.lines.push(JSON.parse(line) as Record<string, unknown>);
      });
      const ready = once(createInterface({ input: child.stdout }), 'line') as Promise<[string]>;
      const [first] = await Promise.race([ready, ended]);
      if (typeof first !== 'string') throw new Error(`attest signer ended with ${first}: ${said}`);
      made.opsUrl = (JSON.parse(first) as { ops_url: string }).ops_url;
    },
    kill: async () => void (await stop('SIGKILL')),
    stop: () => stop('SIGTERM'),
  };
  test.teardown(async () => {
    await stop('SIGKILL');
    await rm(dir, { recursive: true, force: true });
  });
  await made.start();
  return made;
}
