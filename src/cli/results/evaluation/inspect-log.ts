/** Logs of inspect_ai: `.eval`, a zip file, and `.json`. */
import type { JsonObject } from '@bufbuild/protobuf';
import { findPathProblem, printablePath } from '../../../proof/set/path.js';
import { UsageError } from '../../cli.js';
import { fieldsOf, parseLogJson } from '../log-json.js';
import { inspectMetadata, type SampleCounts } from './inspect-metadata.js';
import { type Slice, sliceItems, sliceMembers } from './json-slices.js';
import { samplePath, type Visit } from './log-part.js';
import { openZip, type Zip } from './zip-file.js';

const SAMPLE = /^samples\/(.*)\.json$/s;

/** What it writes while the evaluation runs, and has again in other members. */
const JOURNAL = /^_journal\//;

const MAX_HEADER_BYTES = 16 * 1024 * 1024;
const MAX_SUMMARIES_BYTES = 256 * 1024 * 1024;

/**
 * Visits the members of a `.eval` log without its journal; `onTotal` is called with their size before. Returns the metadata.
 * Throws UsageError if it is none.
 */
export async function readInspectZip(
  file: string,
  visit: Visit,
  onTotal: (bytes: number) => void,
): Promise<JsonObject> {
  const zip = await openZip(file);
  try {
    const header = await readAll(zip, 'header.json', MAX_HEADER_BYTES);
    if (header === undefined)
      throw new UsageError(
        `${file} has no header.json: the evaluation has not ended, or it is no log of inspect_ai`,
      );
    const summaries = await readAll(zip, 'summaries.json', MAX_SUMMARIES_BYTES);
    const metadata = inspectMetadata(
      fieldsOf(parseLogJson(header, 'header.json')),
      summaries === undefined ? { total: 0, errored: 0 } : countSamples(summaries),
    );
    const members = zip.members.filter(({ name }) => !JOURNAL.test(name));
    onTotal(members.reduce((sum, { bytes }) => sum + bytes, 0));
    for (const member of members) {
      await visit({ path: memberPath(member.name), pieces: () => zip.read(member) });
    }
    return metadata;
  } finally {
    zip.close();
  }
}

function memberPath(name: string): string {
  const [, sample] = SAMPLE.exec(name) ?? [];
  if (sample !== undefined) return samplePath(sample);
  const problem = findPathProblem(name);
  if (problem === undefined) return name;
  throw new UsageError(`the log has a member ${printablePath(name)}, which ${problem}`);
}

async function readAll(zip: Zip, name: string, maxBytes: number): Promise<Uint8Array | undefined> {
  const member = zip.members.find((one) => one.name === name);
  if (member === undefined) return undefined;
  if (member.bytes > maxBytes) throw new UsageError(`${name} is larger than ${maxBytes / 1024 ** 2} MiB`);
  const pieces: Uint8Array[] = [];
  for await (const piece of zip.read(member)) pieces.push(piece);
  return Buffer.concat(pieces);
}

function countSamples(summaries: Uint8Array): SampleCounts {
  let [total, errored] = [0, 0];
  for (const { start } of sliceItems(summaries, 0)) {
    total++;
    if (hasError(summaries, sliceMembers(summaries, start))) errored++;
  }
  return { total, errored };
}

function hasError(text: Uint8Array, members: ReadonlyMap<string, Slice>): boolean {
  const error = members.get('error');
  return error !== undefined && Buffer.from(text.subarray(error.start, error.end)).toString() !== 'null';
}

/** What a header has, of the members of a `.json` log. */
const HEADER = ['version', 'status', 'eval', 'plan', 'results', 'stats'];

/** Visits the samples of a `.json` log, whose members these are. Returns the metadata. Throws UsageError if it is none. */
export async function readInspectJson(
  text: Uint8Array,
  members: ReadonlyMap<string, Slice>,
  visit: Visit,
): Promise<JsonObject> {
  const header = HEADER.flatMap((name) => {
    const slice = members.get(name);
    return slice === undefined ? [] : [[name, parseLogJson(text.subarray(slice.start, slice.end), name)]];
  });
  let [total, errored] = [0, 0];
  const samples = members.get('samples');
  for (const { start, end } of samples === undefined ? [] : sliceItems(text, samples.start)) {
    const fields = sliceMembers(text, start);
    total++;
    if (hasError(text, fields)) errored++;
    await visit({ path: samplePath(nameOf(text, fields)), pieces: () => [text.subarray(start, end)] });
  }
  return inspectMetadata(Object.fromEntries(header), { total, errored });
}

/** As a `.eval` log names the sample. */
function nameOf(text: Uint8Array, members: ReadonlyMap<string, Slice>): string {
  const [id, epoch] = ['id', 'epoch'].map((name) => {
    const slice = members.get(name);
    if (slice === undefined) throw new UsageError(`the log has a sample without ${name}`);
    return parseLogJson(text.subarray(slice.start, slice.end), `the ${name} of a sample`);
  });
  if (!(typeof id === 'string' || typeof id === 'number') || typeof epoch !== 'number')
    throw new UsageError('the log has a sample whose id and epoch are no text and number');
  return `${id}_epoch_${epoch}`;
}
