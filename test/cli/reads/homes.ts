/** Home directories of users of the command line. */
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Test } from 'tap';
import { type Ended, runHere } from '../../support/calling/run-cli.js';

/** A home directory of its own, and what the user does there. */
export type Home = {
  readonly dir: string;
  /** Path of the file of profiles. */
  readonly file: string;
  readonly env: Record<string, string>;
  /** Runs a command, in an empty folder of data. */
  attest(args: readonly string[], more?: { env?: Record<string, string>; piped?: string }): Promise<Ended>;
  /** Writes the file of profiles, readable for its owner. */
  write(content: string): Promise<void>;
  /** The profiles in the file. */
  read(): Record<string, { base_url: string; api_key: string }>;
};

/** Makes a home without profiles, with these files. */
export function makeHome(t: Test, files: Record<string, string> = {}): Home {
  const dir = t.testdir(files);
  const env = { HOME: dir, DATA_DIR: join(dir, 'no-data') };
  const file = join(dir, '.config/attest/profiles.json');
  return {
    dir,
    file,
    env,
    attest: (args, more = {}) =>
      runHere(args, { env: { ...env, ...more.env }, ...(more.piped !== undefined && { piped: more.piped }) }),
    write: async (content) => {
      await mkdir(dirname(file), { recursive: true });
      writeFileSync(file, content, { mode: 0o600 });
    },
    read: () => JSON.parse(readFileSync(file, 'utf8')).profiles,
  };
}
