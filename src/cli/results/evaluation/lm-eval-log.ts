/** Results of lm-evaluation-harness, with the samples that `--log_samples` writes beside them. */
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import { printablePath } from '../../../proof/set/path.js';
import { UsageError } from '../../cli.js';
import { fieldsOf, parseLogJson } from '../log-json.js';
import { sliceMembers } from './json-slices.js';
import { lmEvalMetadata } from './lm-eval-metadata.js';
import { samplePath, type Visit, visitFile } from './log-part.js';

const NEWLINE = 0x0a;
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/**
 * Visits each line of the files `samples_<task>_<date>.jsonl` beside a file `results_<date>.json`, and these files. Returns
 * the metadata. Throws UsageError if they are no results and samples.
 */
export async function readLmEval(file: string, text: Uint8Array, visit: Visit): Promise<JsonObject> {
  const metadata = lmEvalMetadata(fieldsOf(parseLogJson(text, file)));
  for (const { path, task } of await findSamples(file)) {
    let line = 0;
    for await (const bytes of readLines(path)) {
      line++;
      const name = nameOf(bytes, `line ${line} of ${path}`);
      await visit({ path: samplePath(`${task}/${name}`), pieces: () => [bytes] });
    }
    await visitFile(path, visit);
  }
  return metadata;
}

async function findSamples(file: string): Promise<{ path: string; task: string }[]> {
  const [, date] = /^results_(.+)\.json$/.exec(basename(file)) ?? [];
  if (date === undefined) return [];
  const end = `_${date}.jsonl`;
  const names = (await readdir(dirname(file))).filter(
    (name) => name.startsWith('samples_') && name.endsWith(end),
  );
  return names.sort().map((name) => ({
    path: join(dirname(file), name),
    task: name.slice('samples_'.length, -end.length),
  }));
}

/** `<doc_id>`, and the filter if there is one: a sample has a line for each. */
function nameOf(line: Uint8Array, where: string): string {
  const members = sliceMembers(line, 0);
  const [id, filter = 'none'] = ['doc_id', 'filter'].map((name) => {
    const slice = members.get(name);
    return slice && parseLogJson(line.subarray(slice.start, slice.end), `${name} in ${where}`);
  });
  if (typeof id !== 'number' && typeof id !== 'string') throw new UsageError(`${where} has no doc_id`);
  return filter === 'none' ? String(id) : `${id}_${filter}`;
}

/** Lines without their newlines; empty ones are left out. */
async function* readLines(path: string): AsyncGenerator<Uint8Array> {
  let pieces: Uint8Array[] = [];
  let length = 0;
  const take = (last: Uint8Array) => {
    const line = Buffer.concat([...pieces, last]);
    pieces = [];
    length = 0;
    return line;
  };
  for await (const piece of createReadStream(path) as AsyncIterable<Uint8Array>) {
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, start)) {
      const line = take(piece.subarray(start, end));
      if (line.length > 0) yield line;
      start = end + 1;
    }
    pieces.push(piece.subarray(start));
    length += piece.length - start;
    if (length > MAX_LINE_BYTES)
      throw new UsageError(
        `${printablePath(path)} has a line of more than ${MAX_LINE_BYTES / 1024 ** 2} MiB`,
      );
  }
  const line = take(new Uint8Array());
  if (line.length > 0) yield line;
}
