/** Playwright's JSON report (`--reporter=json`): what is known of projects, and which test an attachment is of. */
import { resolve } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import { UsageError } from '../../cli.js';
import { readInputFile } from '../../input/input-file.js';
import { type Fields, fieldsOf, given, itemsOf, textOf } from '../log-json.js';
import { slug } from './recognise.js';

/** A test that an attachment is of. */
export type ReportedTest = { readonly file?: string; readonly title?: string; readonly project?: string };

/** What the metadata of snapshots takes from a report. */
export type PlaywrightReport = {
  readonly version: string | undefined;
  readonly projects: readonly string[];
  /** Browser and viewport of a project, by its name as Playwright writes it in names of files. */
  readonly settings: ReadonlyMap<string, JsonObject>;
  /** By the absolute path of an attachment. */
  readonly tests: ReadonlyMap<string, ReportedTest>;
};

/** Without a report. */
export const NO_REPORT: PlaywrightReport = {
  version: undefined,
  projects: [],
  settings: new Map(),
  tests: new Map(),
};

const MAX_BYTES = 64 * 1024 * 1024;

/** Reads a report. Throws UsageError if it is none. */
export async function readPlaywrightReport(file: string): Promise<PlaywrightReport> {
  const bytes = await readInputFile(file, "Playwright's report", MAX_BYTES);
  let report: Fields;
  try {
    report = fieldsOf(JSON.parse(Buffer.from(bytes).toString()));
  } catch {
    throw new UsageError(`${file} is not JSON`);
  }
  const config = fieldsOf(report.config);
  if (!Array.isArray(report.suites) || !Array.isArray(config.projects))
    throw new UsageError(`${file} is no JSON report of Playwright: it has no suites and config.projects`);
  const projects = config.projects.flatMap((project) => textOf(fieldsOf(project).name) ?? []);
  const settings = new Map<string, JsonObject>();
  for (const project of itemsOf(config.filteredProjects).map(fieldsOf))
    settings.set(slug(textOf(project.name) ?? ''), settingsOf(fieldsOf(project.use)));
  const tests = new Map(report.suites.flatMap((suite) => attachmentsOf(fieldsOf(suite), [])));
  return { version: textOf(config.version), projects, settings, tests };
}

function settingsOf(use: Fields): JsonObject {
  const { width, height } = fieldsOf(use.viewport);
  const isSized = [width, height].every((side) => Number.isSafeInteger(side) && Number(side) > 0);
  const scale = Number(use.deviceScaleFactor);
  const name = textOf(use.browserName) ?? textOf(use.defaultBrowserType);
  return given({
    browser: name === undefined ? undefined : { name },
    viewport: isSized
      ? given({
          width: Number(width),
          height: Number(height),
          device_scale_factor: scale > 0 && Number.isFinite(scale) ? scale : undefined,
        })
      : undefined,
  });
}

/** At most as deep as suites nest; a report is bounded, so the walk is. */
const MAX_DEPTH = 100;

function attachmentsOf(suite: Fields, titles: readonly string[]): (readonly [string, ReportedTest])[] {
  if (titles.length > MAX_DEPTH)
    throw new UsageError("the suites of Playwright's report are nested too deeply");
  const inner = itemsOf(suite.suites)
    .map(fieldsOf)
    .flatMap((one) => attachmentsOf(one, [...titles, textOf(one.title) ?? '']));
  const own = itemsOf(suite.specs)
    .map(fieldsOf)
    .flatMap((spec) => {
      const title = [...titles, textOf(spec.title) ?? ''].filter((one) => one !== '').join(' > ');
      return itemsOf(spec.tests)
        .map(fieldsOf)
        .flatMap((test) => {
          const about = given({
            file: textOf(spec.file),
            title: textOf(title),
            project: textOf(test.projectName),
          });
          return pathsOf(test).map((path) => [resolve(path), about] as const);
        });
    });
  return [...inner, ...own];
}

function pathsOf(test: Fields): string[] {
  const results = itemsOf(test.results).map(fieldsOf);
  return results.flatMap(({ attachments }) =>
    itemsOf(attachments).flatMap((one) => textOf(fieldsOf(one).path) ?? []),
  );
}
