/** What a snapshot's file says of itself. */
import { open } from 'node:fs/promises';
import type { JsonObject } from '@bufbuild/protobuf';
import { UsageError } from '../../cli.js';
import { readInputFile } from '../../input/input-file.js';

const PNG_HEADER = Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1');
const [WIDTH_AT, HEIGHT_AT, HEADER_BYTES] = [16, 20, 24];
const MAX_SIDE = 0x7fffffff;

/** Media type and size of a PNG image, of its header. Throws UsageError if it is none. */
export async function describePng(file: string): Promise<JsonObject> {
  const opened = await open(file);
  try {
    const { buffer, bytesRead } = await opened.read({ buffer: Buffer.alloc(HEADER_BYTES) });
    const [width, height] = [buffer.readUInt32BE(WIDTH_AT), buffer.readUInt32BE(HEIGHT_AT)];
    const isSized = [width, height].every((side) => side > 0 && side <= MAX_SIDE);
    if (bytesRead < HEADER_BYTES || !isSized || !buffer.subarray(0, PNG_HEADER.length).equals(PNG_HEADER))
      throw new UsageError(`${file} is no PNG image: its header is missing or wrong`);
    return { media_type: 'image/png', width, height };
  } finally {
    await opened.close();
  }
}

/** Snapshots of a text file, and the program that wrote it. */
export type TextSnapshots = {
  readonly tool: 'jest' | 'vitest';
  readonly names: readonly string[];
  readonly count: number;
};

const MAX_TEXT_BYTES = 64 * 1024 * 1024;
const MAX_NAMES_BYTES = 16 * 1024;
const FIRST_LINE = /^\/\/ (Jest|Vitest) Snapshot v\d/;
const ENTRY = /^exports\[`/gm;

/** Bounded, because the engine keeps a place on its stack for each character. */
const NAME = /^exports\[`((?:[^`\\]|\\.){1,2000})`\] = /gms;

/** Reads the names in a file `*.snap`, as many as 16 KiB hold. Throws UsageError if it is not one that Jest or Vitest wrote. */
export async function readTextSnapshots(file: string): Promise<TextSnapshots> {
  const text = Buffer.from(await readInputFile(file, 'snapshots', MAX_TEXT_BYTES)).toString();
  const [, program] = FIRST_LINE.exec(text) ?? [];
  if (program === undefined)
    throw new UsageError(`${file} has no first line of a snapshot file, as "// Jest Snapshot v1"`);
  const names: string[] = [];
  let left = MAX_NAMES_BYTES;
  for (const [, quoted = ''] of text.matchAll(NAME)) {
    const name = quoted.replace(/\\(.)/gs, '$1').replaceAll('\0', '\ufffd').toWellFormed();
    left -= Buffer.byteLength(JSON.stringify(name));
    if (left > 0) names.push(name);
  }
  const count = text.match(ENTRY)?.length ?? 0;
  return { tool: program === 'Vitest' ? 'vitest' : 'jest', names, count };
}
