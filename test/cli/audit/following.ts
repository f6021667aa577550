/** `attest audit --follow` in a process of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Test } from 'tap';
import { PROGRAM } from '../../support/calling/run-cli.js';
import { until } from '../../support/until.js';

/** An event as it is printed. */
export type Event = { event: string } & Record<string, unknown>;

export type Following = {
  readonly events: Event[];
  /** Waits for an event with these members. */
  see(event: string, members?: Record<string, unknown>): Promise<Event>;
  kill(signal: NodeJS.Signals): void;
  /** The exit code, or the signal that ended it. */
  ended(): Promise<number | NodeJS.Signals>;
  stderr(): string;
};

/** Follows a log, polling ten times a second; killed when the test ends. */
export function follow(
  t: Pick<Test, 'teardown'>,
  args: readonly string[],
  env: Record<string, string> = {},
): Following {
  const flags = ['--follow', '--poll', '100ms', '--json'];
  const child = spawn(process.execPath, [...PROGRAM, 'audit', ...args, ...flags], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const events: Event[] = [];
  let stderr = '';
  createInterface({ input: child.stdout }).on('line', (line) => void events.push(JSON.parse(line)));
  child.stderr.on('data', (text: Buffer) => {
    stderr += text.toString();
  });
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const isLike = (one: Event, members: Record<string, unknown>) =>
    Object.entries(members).every(([name, value]) => one[name] === value);
  return {
    events,
    see: (event, members = {}) =>
      until(`${event} ${JSON.stringify(members)}`, () =>
        events.find((one) => one.event === event && isLike(one, members)),
      ),
    kill: (signal) => void child.kill(signal),
    ended: async () => {
      const [code, signal] = await ended;
      return code ?? signal ?? 'SIGKILL';
    },
    stderr: () => stderr,
  };
}
