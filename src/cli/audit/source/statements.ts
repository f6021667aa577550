/** Statements at hand: bundles and exported objects, whose leaves must be in the log with a valid signature. */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { FormatError } from '../../../proof/bytes/format-error.js';
import { equalBytes, verifyEcdsaP256Sha256 } from '../../../proof/bytes/primitives.js';
import type { ExpectedLeaf } from '../../../proof/log/audit.js';
import { leafHash } from '../../../proof/log/merkle.js';
import { IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../../../proof/statement/dsse.js';
import { rebuildLeaf } from '../../../proof/statement/leaf.js';
import { parseJsonText } from '../../../proof/verify/read/json-text.js';
import type { ParsedBundle } from '../../../proof/verify/read/parsed-bundle.js';
import { MAX_BUNDLE_CHARACTERS, readBundle } from '../../../proof/verify/read/read-bundle.js';
import type { Trust } from '../../../proof/verify/trust.js';
import { UsageError } from '../../cli.js';
import { errnoReason, readInputFile } from '../../input/input-file.js';
import { isManifest, isObject } from '../../verify-export/find-files.js';
import { openObject } from '../../verify-export/read-lines.js';

/** Leaves by log origin and log index. */
export type Statements = ReadonlyMap<string, Map<number, ExpectedLeaf>>;

const MAX_LINE_CHARACTERS = 1024 * 1024;
const BUNDLE_FILE = /\.(?:json|bundle)$/;

/**
 * Reads bundles and exported objects (`.jsonl`, `.jsonl.gz`), or all in a directory at any depth. Throws UsageError if
 * one cannot be read. About 200 bytes are kept for each statement.
 */
export async function readStatements(paths: readonly string[], trust: Trust): Promise<Statements> {
  const statements = new Map<string, Map<number, ExpectedLeaf>>();
  for (const path of paths) {
    for await (const file of findFiles(path)) {
      for await (const { parsed, what } of readFile(file)) {
        const origin = parsed.checkpoints[0]?.origin ?? '';
        const leaves = statements.get(origin) ?? new Map<number, ExpectedLeaf>();
        statements.set(origin, leaves);
        leaves.set(parsed.entry.logIndex, await expectLeaf(parsed, what, trust));
      }
    }
  }
  return statements;
}

/** A file named on the command line is read whatever its name. */
async function* findFiles(path: string): AsyncGenerator<string> {
  const found = await stat(path).catch((error: Error) => {
    throw new UsageError(`${path} cannot be read: ${errnoReason(error)}`);
  });
  if (!found.isDirectory()) return yield path;
  const entries = await readdir(path, { withFileTypes: true, recursive: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const isRead = isObject(entry.name) || (BUNDLE_FILE.test(entry.name) && !isManifest(entry.name));
    if (entry.isFile() && isRead) yield join(entry.parentPath, entry.name);
  }
}

async function* readFile(path: string): AsyncGenerator<{ parsed: ParsedBundle; what: string }> {
  if (!isObject(path)) {
    const bytes = await readInputFile(path, 'a bundle', MAX_BUNDLE_CHARACTERS);
    return yield { parsed: parse(bytes, path), what: `the statement in ${path}` };
  }
  const reader = openObject(path, () => {});
  let line = 0;
  try {
    for await (const bytes of reader.lines) {
      const where = `line ${++line} of ${path}`;
      yield { parsed: parse(bundleOf(bytes, where), where), what: `the statement in ${where}` };
    }
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${path} cannot be read: ${errnoReason(error as Error)}`);
  } finally {
    reader.close();
  }
}

function bundleOf(line: Uint8Array, where: string): unknown {
  try {
    const value = parseJsonText(line, MAX_LINE_CHARACTERS);
    if (typeof value === 'object' && value !== null && 'bundle' in value) return value.bundle;
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
  }
  throw new UsageError(`${where} is not a submission with its bundle`);
}

function parse(bundle: unknown, where: string): ParsedBundle {
  const { parsed, problems, uncheckable, unreadable } = readBundle(bundle);
  if (parsed !== undefined) return parsed;
  const reason = uncheckable ?? `it ${unreadable ?? problems[0]?.message}`;
  throw new UsageError(`${where} is not a bundle that can be read: ${reason}`);
}

/** The leaf as the bundle has it, and what is wrong with it beside the log. */
async function expectLeaf(
  { entry, envelope }: ParsedBundle,
  what: string,
  trust: Trust,
): Promise<ExpectedLeaf> {
  const hash = leafHash(entry.body);
  const key = trust.dsseKeys.find(({ keyHint }) => keyHint === envelope.keyHint);
  if (key === undefined) return { hash, what, problem: 'the trust roots lack the key of its signature' };
  const pae = preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, envelope.payload);
  if (!(await verifyEcdsaP256Sha256(key.spki, pae, envelope.signature)))
    return { hash, what, problem: 'its signature is not valid' };
  const { record } = rebuildLeaf(envelope.payload, envelope.signature, key.spki);
  return equalBytes(record, entry.body) ? { hash, what } : { hash, what, problem: 'its leaf is another' };
}
