/** `attest witness` as a process of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { namedCosigner } from '../../../src/config/cosigner-settings.js';
import { encodeVerifierKey } from '../../../src/proof/log/note.js';
import {
  type CosignerKey,
  newCosignerKeyPem,
  parseCosignerKey,
} from '../../../src/server/keys/cosigner-key.js';
import { PROGRAM } from '../calling/run-cli.js';

export type WitnessProcess = {
  url: string;
  opsUrl: string;
  verifierKeys: string[];
  /** The lines of its log so far, parsed. */
  lines: Record<string, unknown>[];
  /** SIGKILL; waits for its end. */
  kill(): Promise<void>;
  /** SIGTERM; returns its exit code. */
  stop(): Promise<number | null>;
};

/** Writes new keys of a witness to files; returns the settings that name them, and the verifier keys. */
export async function writeWitnessKeys(
  dir: string,
  name: string,
  algorithms: readonly CosignerKey['algorithm'][] = ['ed25519', 'ml-dsa-44'],
): Promise<{ settings: Record<string, string>; verifierKeys: string[] }> {
  const made = algorithms.map((algorithm) => ({
    file: join(dir, `${algorithm}.pem`),
    pem: newCosignerKeyPem(algorithm),
  }));
  for (const { file, pem } of made) await writeFile(file, pem, { mode: 0o600 });
  const settings = {
    WITNESS_NAME: name,
    WITNESS_KEY_FILE: made.map(({ file }) => file).join(','),
    WITNESS_HISTORY: join(dir, 'history'),
    HOST: '127.0.0.1',
  };
  const keys = made.map(({ pem }) => namedCosigner(name, parseCosignerKey(pem)).key);
  return { settings, verifierKeys: keys.map(encodeVerifierKey) };
}

/** Starts one, on free ports unless the settings name others; it is killed when the test ends. */
export async function startWitnessProcess(
  test: { teardown(stop: () => Promise<unknown>): void },
  settings: Record<string, string>,
): Promise<WitnessProcess> {
  const child = spawn(process.execPath, [...PROGRAM, 'witness', '--json'], {
    env: { PATH: process.env.PATH, PORT: '0', OPS_PORT: '0', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'close') as Promise<[number | null]>;
  const stop = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    return (await ended)[0];
  };
  test.teardown(() => stop('SIGKILL'));
  const lines: Record<string, unknown>[] = [];
  const other: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    if (line.startsWith('{')) lines.push(JSON.parse(line) as Record<string, unknown>);
    else other.push(line);
  });
  const ready = once(createInterface({ input: child.stdout }), 'line') as Promise<[string]>;
  const first = await Promise.race([ready, ended]);
  if (typeof first[0] !== 'string') throw new Error(`attest witness ended: ${other.join('; ')}`);
  const {
    url,
    ops_url: opsUrl,
    verifier_keys: verifierKeys,
  } = JSON.parse(first[0]) as {
    url: string;
    ops_url: string;
    verifier_keys: string[];
  };
  return {
    url,
    opsUrl,
    verifierKeys,
    lines,
    kill: async () => void (await stop('SIGKILL')),
    stop: () => stop('SIGTERM'),
  };
}
