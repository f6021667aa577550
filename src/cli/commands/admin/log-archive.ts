/** `attest log archive` and `import`: submissions of a log as files of the form of exports, and back. */

import type { Command } from 'commander';
import { readConfig } from '../../../config/config.js';
import { storage } from '../../../config/object-storage.js';
import { integer } from '../../../config/setting-types.js';
import { count } from '../../../proof/export/object-check.js';
import type { Archived } from '../../../server/exports/archive/write-archive.js';
import type { LogArchiver } from '../../../server/process/log-archiver.js';
import { parseFlag } from '../../audit/audit-flags.js';
import { type Cli, print } from '../../cli.js';
import { readWithFlags } from '../../flags/setting-flags.js';
import { addHelp } from '../../output/help.js';
import { openProgress, type Progress } from '../../output/progress.js';

type Flags = { dataDir?: string; json?: boolean };
type ImportFlags = Flags & { from: string };
type DropFlags = Flags & { archive: string; end?: string; withoutEntries?: boolean };
type ArchiveFlags = Flags & { to: string; first?: string; end?: string };

const HELP = `
An archive is a folder, or a bucket: \`s3://BUCKET/PREFIX?region=…\`, \`gs://BUCKET/PREFIX\`,
\`az://CONTAINER/PREFIX?account_url=…\`, as LOG_STORAGE is spelled. It has the form of an export: \`attest verify --export PATH\` verifies it.

\`archive\` writes the settled batches of a log, of all projects, oldest first. Objects that are there with the same bytes stay;
run it again to continue, and after redactions. \`--first N\` begins at the batch that has leaf N. The manifests are signed with
the key that signs statements (DSSE_KEY_FILE; with \`attest up\` that of the data directory).

\`import\` puts a log that has ended, and is archived whole, into another database of the same keys and checkpoint register
(CHECKPOINT_REGISTER), where its lane has a later epoch and the log no leaves. Everything is checked first: the signatures, each leaf, each
checkpoint, and the newest one against the register. It is all there at the end, or nothing.

\`drop\` removes the submissions below --end that the archive has from the database, after it has compared each. It keeps tiles
and batches, and whole tiles of 256 leaves: proofs of later leaves go on. GET of one that is removed is answered with 410 and its
object. The entries of the public log must be in LOG_STORAGE. Replace all processes by this version first.`;

export const ARCHIVE_EXAMPLES = [
  'attest log archive live.log.example.com --to /mnt/archive',
  "attest log archive live.log.example.com --to 's3://BUCKET/archive?region=eu-central-1'",
  'attest log import live.log.example.com --from /mnt/archive',
  'attest log drop live.log.example.com --archive /mnt/archive --end 1000000',
];

const MAX_INDEX = Number.MAX_SAFE_INTEGER;

/** Adds the commands of archives to `attest log`. */
export function addLogArchive(log: Command, cli: Cli): void {
  addFlags(log.command('archive <origin>'))
    .description('write settled submissions of a log to a folder or bucket, in the form of an export')
    .requiredOption('--to <place>', 'folder, or URL of a bucket or container')
    .option('--first <n>', 'leaf to begin at (default: 0)')
    .option('--end <n>', 'size of the log to end at (default: the last settled batch)')
    .action(async (origin: string, flags: ArchiveFlags) => {
      const range = { first: readIndex('--first', flags.first), end: readIndex('--end', flags.end) };
      await withArchiver(cli, flags, { flag: '--to', place: flags.to }, async (archiver) => {
        const progress = showProgress(cli, 'archiving leaves');
        const archived = await archiver.archive(origin, range, progress).finally(progress.clear);
        const { first, end, objects, written, bytes, isWhole, isEnding } = archived;
        const json = { origin, first, end, objects, written, bytes, is_whole: isWhole, is_ending: isEnding };
        const text = `archived leaves ${first} to ${end - 1} of ${origin}: ${count(objects, 'object')}, ${written} of them new or changed`;
        print(cli, flags.json ? JSON.stringify(json) : `${text}${nextStep(archived)}`);
      });
    });
  addImport(log, cli);
  addDrop(log, cli);
}

/** What a log that gets no more submissions is ready for. */
function nextStep({ isWhole, isEnding }: Pick<Archived, 'isWhole' | 'isEnding'>): string {
  if (isWhole) return '; the log has ended and is whole: it can be imported';
  if (isEnding) return '; the log has not ended yet, and can be imported once it is archived after that';
  return '';
}

function addImport(log: Command, cli: Cli): void {
  addFlags(log.command('import <origin>'))
    .description('put an archived log that has ended into this database')
    .requiredOption('--from <place>', 'folder, or URL of a bucket or container')
    .action(async (origin: string, flags: ImportFlags) => {
      await withArchiver(cli, flags, { flag: '--from', place: flags.from }, async (archiver) => {
        const progress = showProgress(cli, 'importing leaves');
        const imported = await archiver.import(origin, progress).finally(progress.clear);
        const { leaves, projects, newProjects } = imported;
        const text = `imported ${origin}: ${count(leaves, 'leaf', 'leaves')} of ${count(projects, 'project')}, ${newProjects} of them new here`;
        print(
          cli,
          flags.json ? JSON.stringify({ origin, leaves, projects, new_projects: newProjects }) : text,
        );
      });
    });
}

function addDrop(log: Command, cli: Cli): void {
  addFlags(log.command('drop <origin>'))
    .description('remove archived submissions of a log from the database')
    .requiredOption('--archive <place>', 'folder, or URL of a bucket or container')
    .option('--end <n>', 'leaf that the first one to keep has (default: all of a log that has ended)')
    .option('--without-entries', 'although the public log has the entries nowhere else')
    .action(async (origin: string, flags: DropFlags) => {
      const end = readIndex('--end', flags.end);
      await withArchiver(cli, flags, { flag: '--archive', place: flags.archive }, async (archiver) => {
        const progress = showProgress(cli, 'removing leaves');
        const how = { end, hasEntries: flags.withoutEntries !== true };
        const dropped = await archiver.drop(origin, how, progress).finally(progress.clear);
        const isLess = end !== undefined && dropped.end < end;
        const why = isLess ? '; a batch or tile that goes beyond --end stays' : '';
        const text = `removed ${count(dropped.removed, 'submission')} of ${origin}: the database has those from leaf ${dropped.end} on${why}`;
        print(cli, flags.json ? JSON.stringify(dropped) : text);
      });
    });
}

function addFlags(command: Command): Command {
  return addHelp(command, HELP, ARCHIVE_EXAMPLES)
    .option('--data-dir <dir>', 'data directory of `attest up` (DATA_DIR, default: .data)')
    .option('--json', 'print JSON');
}

function readIndex(flag: string, text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseFlag(flag, integer(0, MAX_INDEX), text);
}

async function withArchiver<T>(
  cli: Cli,
  { dataDir }: Flags,
  { flag, place }: { flag: string; place: string },
  use: (archiver: LogArchiver) => Promise<T>,
): Promise<T> {
  const stored = parseFlag(flag, storage, place);
  const flags = dataDir === undefined ? {} : { dataDir };
  const config = readWithFlags(cli.env, flags, (env) => readConfig(env, { process: 'archive' }));
  return (await import('../../../server/process/run.js')).withArchive(config, stored, use);
}

/** Shows progress on stderr, from when the number of leaves is known. */
function showProgress(cli: Cli, label: string) {
  let progress: Progress | undefined;
  const output = { output: cli.stderr, now: () => cli.now().getTime() };
  return {
    onStart: (leaves: number) => {
      progress = openProgress(output, label, leaves, String);
    },
    onLeaves: (leaves: number) => progress?.add(leaves),
    clear: () => progress?.clear(),
  };
}
