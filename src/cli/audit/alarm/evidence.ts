/** Files about two checkpoints that contradict each other, which anybody can check without us. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { toBase64, toHex, utf8 } from '../../../proof/bytes/encoding.js';
import { sha256 } from '../../../proof/bytes/primitives.js';
import { encodeVerifierKey } from '../../../proof/log/note.js';
import { readOptionalFile } from '../../../server/core/files/read-optional-file.js';
import { writeFileAtomic } from '../../../server/core/files/write-file-atomic.js';
import type { Signers } from '../checkpoint/seen-checkpoint.js';
import type { Alarm, Evidence } from './alarm.js';

/** Evidence is to be shown to others. */
const MODE = 0o644;

const README = `Two signed checkpoints of one log (C2SP tlog-checkpoint, signed-note), as they were served.

first.note and second.note must be signed by log_key of evidence.json or by one of witness_keys: use any verifier of
signed notes, such as Go's golang.org/x/mod/sumdb/note.

Their second line is the size of the log, the third its root. No log has two roots of one size. If the sizes differ,
evidence.json has a prefix: the root that the tree of second.note has at the size of first.note, and the consistency
proof (RFC 9162, section 2.1.4) that verifies between this root and that of second.note. The root in first.note is
another: the log is not append-only. Without a prefix, and with different sizes, the notes alone prove nothing:
the alarm says what was wrong.
`;

/**
 * Writes the evidence of an alarm, if it has any, into a folder of its own in the directory, and returns the folder.
 * The same evidence goes into the same folder, whose files stay as they are: they say when it was found first.
 */
export async function writeEvidence(
  directory: string,
  alarm: Alarm,
  signers: Signers,
  now: Date,
): Promise<string | undefined> {
  const { evidence } = alarm;
  if (evidence === undefined) return undefined;
  const folder = join(directory, folderName(alarm.origin, evidence));
  await mkdir(folder, { recursive: true });
  const files: [name: string, text: string][] = [
    ['first.note', evidence.first.envelope],
    ['second.note', evidence.second.envelope],
    ['evidence.json', `${JSON.stringify(evidenceJson(alarm, evidence, signers, now), undefined, 2)}\n`],
    ['README.txt', README],
  ];
  for (const [name, text] of files) {
    const path = join(folder, name);
    if ((await readOptionalFile(path)) === undefined) await writeFileAtomic(path, text, { mode: MODE });
  }
  return folder;
}

function folderName(origin: string, { first, second }: Evidence): string {
  const id = toHex(sha256(utf8(first.note.text), utf8(second.note.text))).slice(0, 16);
  return `${origin.replace(/[^A-Za-z0-9.-]/g, '_').slice(0, 100)}-${id}`;
}

function evidenceJson(
  { kind, origin, message }: Alarm,
  { first, second, prefix }: Evidence,
  { log, cosigners }: Signers,
  now: Date,
): object {
  return {
    kind,
    origin,
    message,
    found_at: now.toISOString(),
    log_key: encodeVerifierKey(log.key),
    witness_keys: cosigners.map(({ name, key }) => ({ name, key: encodeVerifierKey(key) })),
    first: { from: first.from, tree_size: first.size, root: toBase64(first.rootHash) },
    second: { from: second.from, tree_size: second.size, root: toBase64(second.rootHash) },
    ...(prefix && {
      prefix: {
        tree_size: prefix.size,
        root: toBase64(prefix.rootHash),
        consistency_proof: prefix.proof.map(toBase64),
      },
    }),
  };
}
