/** Finds the snapshots of a folder, and makes their metadata by the schema ui_snapshot.v1. */
import { stat } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { listFiles } from '../../../client/files/list-files.js';
import { hashArtifact } from '../../../client/hash.js';
import { UsageError } from '../../cli.js';
import { errnoReason } from '../../input/input-file.js';
import { given } from '../log-json.js';
import { describePng, readTextSnapshots } from './file-facts.js';
import { NO_REPORT, type PlaywrightReport, readPlaywrightReport } from './playwright-report.js';
import { type Recognised, recognise, slug } from './recognise.js';

/** A file to attest, and its metadata once its hash is known. */
export type Snapshot = { readonly file: string; readonly metadataOf: (sha256: string) => JsonObject };

/** Folders without snapshots of the project's own. */
const OTHERS = /(?:^|\/)(?:node_modules|\.git)$/;

/**
 * The snapshots of a folder in the order of their paths. Throws UsageError if it is no folder, there are none, or one is no
 * image or text of snapshots, and what listing throws.
 */
export async function readSnapshots(folder: string, reportFile: string | undefined): Promise<Snapshot[]> {
  const found = await stat(folder).catch((error: Error) => {
    throw new UsageError(`${folder} cannot be read: ${errnoReason(error)}`);
  });
  if (!found.isDirectory()) throw new UsageError(`${folder} is not a folder: --snapshots takes one`);
  const report = reportFile === undefined ? NO_REPORT : await readPlaywrightReport(reportFile);
  const recogniseIn = (path: string) => recognise(path, report.projects);
  const paths = await listFiles(folder, {
    filter: (path, isFolder) =>
      isFolder ? !OTHERS.test(path) : /\.(?:png|jpe?g|txt|yml|json|snap)$/.test(path),
  });
  const all = new Set(paths);
  const recognised = paths.flatMap((path) => recogniseIn(path) ?? []);
  if (recognised.length === 0)
    throw new UsageError(
      `${folder} has no snapshots: no folder *-snapshots, __screenshots__, __snapshots__ or __image_snapshots__, and no *-actual.png`,
    );
  const snapshots: Snapshot[] = [];
  for (const one of recognised) snapshots.push(await describe(folder, one, { all, report }));
  return snapshots;
}

type Known = { readonly all: ReadonlySet<string>; readonly report: PlaywrightReport };

async function describe(folder: string, one: Recognised, { all, report }: Known): Promise<Snapshot> {
  const file = join(folder, one.path);
  const digestOf = async (path: string | undefined) =>
    path === undefined || !all.has(path)
      ? {}
      : { digest: { sha256: await hashArtifact(join(folder, path)) } };
  const isActual = one.kind === 'actual';
  const baseline = isActual ? await digestOf(one.baseline) : undefined;
  const diff = isActual ? await digestOf(one.diff) : {};
  const text = one.path.endsWith('.snap') ? await readTextSnapshots(file) : undefined;
  const image = one.path.endsWith('.png') ? await describePng(file) : undefined;
  const tested = report.tests.get(resolve(file));
  const project = tested?.project ?? one.project;
  const tool = text?.tool ?? one.tool;
  const snapshot: JsonObject =
    text === undefined
      ? { name: one.name ?? basename(one.path) }
      : { names: [...text.names], count: text.count };
  const metadata: Record<string, JsonValue | undefined> = {
    schema: 'ui_snapshot.v1',
    kind: one.kind,
    tool: given({ name: tool, version: tool === 'playwright' ? report.version : undefined }),
    test: testOf(folder, one, tested),
    snapshot,
    diff: diff.digest === undefined ? undefined : { digest: diff.digest },
    image,
    project,
    platform: one.platform,
    browser: one.browser === undefined ? undefined : { name: one.browser },
    ...(project === undefined ? {} : report.settings.get(slug(project))),
  };
  return {
    file,
    metadataOf: (sha256) =>
      given({ ...metadata, baseline: baseline ?? { digest: { sha256 } } }) as JsonObject,
  };
}

/** Of what a test of Playwright saw, only the report knows more than the name of its folder. */
function testOf(
  folder: string,
  one: Recognised,
  tested: { file?: string; title?: string } | undefined,
): JsonObject {
  const file = one.testFile === undefined ? tested?.file : shown(folder, one.testFile);
  if (file !== undefined) return given({ file, title: tested?.title });
  if (one.tool === 'jest-image-snapshot') return { title: one.name ?? '' };
  return { title: basename(dirname(one.path)) };
}

/** The path from the working folder, or from the folder of the snapshots if that is elsewhere. */
function shown(folder: string, path: string): string {
  const own = relative('.', join(folder, path));
  const isInside = own !== '..' && !own.startsWith(`..${sep}`);
  return (isInside ? own : path).split(sep).join('/');
}
