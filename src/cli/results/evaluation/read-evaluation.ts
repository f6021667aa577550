/** Reads logs of evaluations, by their content. */
import { open, readFile } from 'node:fs/promises';
import type { JsonObject } from '@bufbuild/protobuf';
import { UsageError } from '../../cli.js';
import { inputFileSize } from '../../input/input-file.js';
import { readInspectJson, readInspectZip } from './inspect-log.js';
import { sliceMembers } from './json-slices.js';
import { readLmEval } from './lm-eval-log.js';
import { type Visit, visitFile } from './log-part.js';
import { readPromptfoo } from './promptfoo-log.js';

const MAX_JSON_BYTES = 512 * 1024 * 1024;

/** The first bytes of a zip file. */
const ZIP = Buffer.from('PK');

/**
 * Visits what an evaluation's log is made of, and the log itself: of inspect_ai, lm-evaluation-harness or promptfoo. Returns
 * its metadata, by the schema evaluation.v1. `onTotal` is called first with the size of all parts, about. Throws UsageError if it is none of these, or cannot be read.
 */
export async function readEvaluation(
  file: string,
  visit: Visit,
  onTotal: (bytes: number) => void = () => {},
): Promise<JsonObject> {
  const size = await inputFileSize(file);
  const isOfZip = await isZip(file);
  if (!isOfZip) onTotal(2 * size);
  const metadata = await (isOfZip
    ? readInspectZip(file, visit, (bytes) => onTotal(bytes + size))
    : readJson(file, size, visit));
  await visitFile(file, visit);
  return keepToBound(metadata);
}

async function isZip(file: string): Promise<boolean> {
  const opened = await open(file);
  try {
    const { buffer } = await opened.read({ buffer: Buffer.alloc(ZIP.length) });
    return buffer.equals(ZIP);
  } finally {
    await opened.close();
  }
}

async function readJson(file: string, size: number, visit: Visit): Promise<JsonObject> {
  if (size > MAX_JSON_BYTES)
    throw new UsageError(
      `${file} is larger than ${MAX_JSON_BYTES / 1024 ** 2} MiB: of inspect_ai, convert it with \`inspect log convert --to eval\``,
    );
  const text = await readFile(file);
  const members = sliceMembers(text, 0);
  const has = (...names: string[]) => names.every((name) => members.has(name));
  if (has('eval', 'status', 'version')) return readInspectJson(text, members, visit);
  if (has('evalId', 'results')) return readPromptfoo(text, members, visit);
  if (has('results', 'configs', 'versions')) return readLmEval(file, text, visit);
  throw new UsageError(
    `${file} is no log of inspect_ai (.eval or .json), results of lm-evaluation-harness or output of promptfoo`,
  );
}

/** Below the service's bound of 64 KiB, with room for what a caller adds. */
const MAX_METADATA_BYTES = 56 * 1024;

/** Cuts lists, metrics last, until the metadata is small enough, and notes how many items are gone. */
function keepToBound(metadata: JsonObject): JsonObject {
  const lengthOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
  let left = lengthOf(metadata);
  const kept = { ...metadata };
  const omitted: Record<string, number> = {};
  for (const name of ['subtasks', 'versions', 'metrics']) {
    const list = kept[name];
    if (left <= MAX_METADATA_BYTES || typeof list !== 'object' || list === null) continue;
    const items = Object.entries(list);
    let size = items.length;
    while (size > 0 && left > MAX_METADATA_BYTES) {
      const [key, item] = items[--size] as [string, unknown];
      left -= lengthOf(item) + 1 + (Array.isArray(list) ? 0 : lengthOf(key) + 1);
    }
    const cut = items.slice(0, size);
    kept[name] = Array.isArray(list) ? cut.map(([, item]) => item) : Object.fromEntries(cut);
    omitted[name] = items.length - size;
  }
  if (left > MAX_METADATA_BYTES)
    throw new UsageError('the log says more of the run than 64 KiB of metadata hold');
  return Object.keys(omitted).length === 0 ? kept : { ...kept, omitted };
}
