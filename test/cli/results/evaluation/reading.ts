/** Logs for tests: those that the tools wrote, and how they are read. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JsonObject } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import { readEvaluation } from '../../../../src/cli/results/evaluation/read-evaluation.js';

/** Where the recorded logs are; of the sources, because the build does not copy them. */
export const SAMPLES = fileURLToPath(new URL('../../../../../test/cli/results/recorded', import.meta.url));

/** A log's metadata and its parts by their paths. */
export type Read = { readonly metadata: JsonObject; readonly parts: ReadonlyMap<string, Buffer> };

/** Reads a log with all its parts. */
export async function readParts(file: string): Promise<Read> {
  const parts = new Map<string, Buffer>();
  const metadata = await readEvaluation(file, async ({ path, pieces }) => {
    const found: Uint8Array[] = [];
    for await (const piece of pieces()) found.push(Uint8Array.from(piece));
    parts.set(path, Buffer.concat(found));
  });
  return { metadata, parts };
}

/** Writes a log to a file of the test's own. */
export function writeLog(t: Test, name: string, content: Uint8Array | string): string {
  const file = join(t.testdir(), name);
  writeFileSync(file, content);
  return file;
}

/** The content of a recorded log. */
export function recorded(path: string): Buffer {
  return readFileSync(join(SAMPLES, path));
}

/** SHA-256 in hex. */
export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
