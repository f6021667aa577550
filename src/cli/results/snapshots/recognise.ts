/** Recognises snapshots by the names that Playwright, Vitest, Jest and jest-image-snapshot give files and folders. */

/** A file that is a snapshot, by its path. Paths have `/` between segments. */
export type Recognised = {
  readonly path: string;
  readonly tool: 'playwright' | 'vitest' | 'jest' | 'jest-image-snapshot';
  /** The baseline itself, or what a test saw instead. */
  readonly kind: 'baseline' | 'actual';
  /** The test's file; of results of Playwright only its report has it. */
  readonly testFile?: string;
  /** Without project, browser and platform; undefined of a file that has several. */
  readonly name?: string;
  readonly project?: string;
  readonly browser?: string;
  readonly platform?: string;
  /** Where the baseline and the image of differences of what a test saw are, if they are there. */
  readonly baseline?: string;
  readonly diff?: string;
};

const PLAYWRIGHT = /^(.+)-snapshots\/(.+)-(linux|darwin|win32)\.(?:png|jpe?g|txt|yml|json)$/;
const PLAYWRIGHT_ACTUAL = /^(.+)-actual\.png$/;
const VITEST =
  /^((?:.+\/)?)__screenshots__\/([^/]+)\/(.+)-(chromium|firefox|webkit|chrome|edge|safari)-(linux|darwin|win32)\.png$/;
const VITEST_ACTUAL =
  /^((?:.+\/)?)\.vitest-attachments\/((?:.+\/)?)([^/]+)\/(.+)-actual-([a-z]+)-(linux|darwin|win32)\.png$/;
const TEXT = /^((?:.+\/)?)__snapshots__\/([^/]+)\.snap$/;
const JEST_IMAGE = /^((?:.+\/)?)__image_snapshots__\/((?:.+\/)?[^/]+)-snap\.png$/;
const JEST_IMAGE_ACTUAL = /^((?:.+\/)?)__image_snapshots__\/__received_output__\/([^/]+)-snap-received\.png$/;
const JEST_IMAGE_OUTPUT = /__(?:diff|received)_output__\//;

/** What a path names; undefined if it is no snapshot. `projects`: names of Playwright's, which end names
 * of snapshots; unknown ones stay in the name. */
export function recognise(path: string, projects: readonly string[]): Recognised | undefined {
  return (
    playwright(path, projects) ?? vitest(path) ?? text(path) ?? jestImage(path) ?? playwrightActual(path)
  );
}

function playwright(path: string, projects: readonly string[]): Recognised | undefined {
  const [, testFile, stem, platform] = PLAYWRIGHT.exec(path) ?? [];
  if (testFile === undefined || stem === undefined || platform === undefined) return undefined;
  const project = projects
    .map(slug)
    .filter((one) => one !== '' && stem.endsWith(`-${one}`))
    .sort((a, b) => b.length - a.length)[0];
  const name = project === undefined ? stem : stem.slice(0, -project.length - 1);
  return {
    path,
    tool: 'playwright',
    kind: 'baseline',
    testFile,
    name,
    platform,
    ...(project && { project }),
  };
}

/** As Playwright writes a project's name in a file's. */
export function slug(project: string): string {
  return project.replace(/[^a-zA-Z0-9]+/g, '-').replace(/^-|-$/g, '');
}

/** Beside it are `-expected.png` and `-diff.png`. */
function playwrightActual(path: string): Recognised | undefined {
  const [, stem] = PLAYWRIGHT_ACTUAL.exec(path) ?? [];
  if (stem === undefined) return undefined;
  const name = stem.slice(stem.lastIndexOf('/') + 1);
  const [baseline, diff] = [`${stem}-expected.png`, `${stem}-diff.png`];
  return { path, tool: 'playwright', kind: 'actual', name, baseline, diff };
}

function vitest(path: string): Recognised | undefined {
  const [, before = '', test = '', name, browser, platform] = VITEST.exec(path) ?? [];
  if (name !== undefined && browser !== undefined && platform !== undefined) {
    return { path, tool: 'vitest', kind: 'baseline', testFile: before + test, name, browser, platform };
  }
  const [, root = '', folder = '', file = '', actual, engine, system] = VITEST_ACTUAL.exec(path) ?? [];
  if (actual === undefined || engine === undefined || system === undefined) return undefined;
  return {
    path,
    tool: 'vitest',
    kind: 'actual',
    testFile: root + folder + file,
    name: actual,
    browser: engine,
    platform: system,
    baseline: `${root}${folder}__screenshots__/${file}/${actual}-${engine}-${system}.png`,
    diff: path.replace('-actual-', '-diff-'),
  };
}

/** Vitest and Jest name such files alike; their first lines differ. */
function text(path: string): Recognised | undefined {
  const [, before = '', test] = TEXT.exec(path) ?? [];
  return test === undefined ? undefined : { path, tool: 'jest', kind: 'baseline', testFile: before + test };
}

/** Named after the test, whose file's name is part of it: `a-test-js-a-box-1-snap.png`. */
function jestImage(path: string): Recognised | undefined {
  const tool = 'jest-image-snapshot';
  const [, folder = '', received] = JEST_IMAGE_ACTUAL.exec(path) ?? [];
  if (received !== undefined) {
    const baseline = `${folder}__image_snapshots__/${received}-snap.png`;
    const diff = `${folder}__image_snapshots__/__diff_output__/${received}-snap-diff.png`;
    return { path, tool, kind: 'actual', name: received, baseline, diff };
  }
  const [, , name] = JEST_IMAGE.exec(path) ?? [];
  if (name === undefined || JEST_IMAGE_OUTPUT.test(path)) return undefined;
  return { path, tool, kind: 'baseline', name };
}
