/** `attest submit --junit`: reports of tests, with a test result made of them. */
import { randomBytes } from 'node:crypto';
import { open } from 'node:fs/promises';
import { type Cli, UsageError } from '../../cli.js';
import type { ClientFlags } from '../../flags/client-flags.js';
import { parseDuration } from '../../flags/flag-values.js';
import { openClient } from '../../flags/open-client.js';
import { onInterruption } from '../../input/interruption.js';
import { type ImageFlags, imageInputs, imagesPusher } from '../../oci/submit-images.js';
import { type BuildFlags, continuation, readBuild } from '../../submit/build.js';
import { describeRun, type RunFlags } from '../describe-run.js';
import { pathsIn } from '../set-paths.js';
import { assertOutputs, type ResultFlags, submitResults } from '../submit-results.js';
import { findReports, foldersOf } from './find-reports.js';
import { junitResults, readReports } from './read-junit.js';

/** Flags of `attest submit` that have no meaning for reports, as they are written. */
const UNUSED = {
  metadata: '--metadata',
  schema: '--schema',
  each: '--each',
  include: '--include',
  exclude: '--exclude',
  notBefore: '--not-before',
  bundles: '--bundles',
  filesFrom: '--files-from',
  checksums: '--checksums',
} as const;

/** Flags of `attest submit` that --junit takes, and those that it does not. */
export type JUnitFlags = RunFlags &
  ClientFlags &
  ResultFlags &
  ImageFlags &
  BuildFlags & { timeout: string } & { [Name in keyof typeof UNUSED]?: unknown };

const SNIFFED_BYTES = 1024;

/**
 * Submits the reports that --junit names, with a test result whose configuration has the digests of `files`. Throws UsageError
 * before anything is submitted if a report or a flag is wrong, and what the calls throw.
 */
export async function submitJUnit(
  cli: Cli,
  { junit, files }: { junit: readonly string[]; files: readonly string[] },
  flags: JUnitFlags,
): Promise<void> {
  for (const [name, flag] of Object.entries(UNUSED)) {
    if (name in flags) throw new UsageError(`--junit makes the metadata, of reports: leave out ${flag}`);
  }
  if (flags.push && !flags.public)
    throw new UsageError('--push with --junit needs --public: only then is the image a subject');
  const timeoutMs = parseDuration('--timeout', flags.timeout, '1s', '30d');
  const build = readBuild(flags, () => `run-${randomBytes(8).toString('hex')}`);
  const client = openClient(cli, flags);
  const found = await findReports(junit);
  if (found.length === 0) throw new UsageError(`--junit ${junit.join(', ')}: there is no report`);
  const asSet = flags.set !== undefined;
  assertOutputs(flags, asSet || found.length > 1 ? (flags.set ?? 'junit.set.json') : undefined, build);
  for (const file of files) await assertNoReport(file);
  const images = await imageInputs(cli, flags);
  const details = await describeRun(cli, files, flags, images);
  const interruption = onInterruption(cli, 'stopping; repeat to exit at once');
  const { signal } = interruption;
  try {
    const read = await readReports(cli, found, signal);
    const results = junitResults(read, details, { pathOf: pathsIn(foldersOf(junit)), asSet });
    await submitResults(
      cli,
      { ...results, otherFiles: details.files },
      {
        flags,
        submission: {
          client,
          build,
          timeoutMs,
          howToContinue: () => continuation(cli, build),
          push: imagesPusher(cli, images, { client, flags, signal }),
          signal,
        },
      },
    );
  } catch (error) {
    if (!signal.aborted) throw error;
    cli.stderr.write('interrupted: nothing was submitted\n');
  } finally {
    interruption.end();
  }
}

/** A shell expands `--junit *.xml` to one report and further files. Throws UsageError if such a file is a report. */
async function assertNoReport(file: string): Promise<void> {
  if (!file.endsWith('.xml')) return;
  const opened = await open(file).catch(() => undefined);
  const { buffer, bytesRead } = (await opened?.read({ buffer: Buffer.alloc(SNIFFED_BYTES) })) ?? {};
  await opened?.close();
  if (!/<testsuites?[\s>]/.test(buffer?.subarray(0, bytesRead).toString('latin1') ?? '')) return;
  throw new UsageError(
    `${file} is a report, too: repeat --junit for each, or quote the pattern for this program`,
  );
}
