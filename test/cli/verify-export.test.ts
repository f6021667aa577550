import { readFile, rm } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import type { ManifestFields, ManifestObject } from '../../src/proof/export/manifest-fields.js';
import { describeObject, type Line, objectBytes } from '../proof/export/export-sample.js';
import { EXPORT_ID, signManifest } from '../proof/export/manifest-sample.js';
import { makeService, PROJECT } from '../proof/sample.js';
import {
  type Download,
  dayFields,
  download,
  folderOf,
  foreign,
  fourth,
  large,
  PATHS,
  service,
  third,
} from './downloaded-export.js';

t.test('a downloaded export verifies, at any level, compressed or not', async (t) => {
  for (const ending of ['.jsonl', '.jsonl.gz'] as const) {
    const { verify } = await download(t, { ending, hasLarge: true });
    for (const path of ['', 'attestations', `attestations/${EXPORT_ID}`, `attestations/${EXPORT_ID}/live`]) {
      const { code, stdout, stderr } = await verify(path);
      t.match({ code, stderr }, { code: 0, stderr: '' }, path);
      t.match(stdout, /^lines +1006 verified\nobjects +4\nmanifests +3 verified\n/);
      t.match(
        stdout,
        `export       ${EXPORT_ID}, ${PROJECT}, live: 2025-06-06 to 2025-06-08, the last day is not`,
      );
      t.match(stdout, `live.log.example: from size 0 to ${fourth.treeSize}; the export starts at 0`);
      t.match(
        stdout,
        /All 1006 lines of 4 objects are verified, and the manifests show no object missing\.\n$/,
      );
    }
    const month = await verify(`attestations/${EXPORT_ID}/live/2025/06`, '--project', PROJECT);
    t.match(month, { code: 0, stdout: /1006 verified/ });
    const day = await verify(folderOf('2025-06-07'));
    t.match(day, { code: 0, stdout: `from size ${large.treeSize} to ${third.treeSize}` });
  }
});

t.test('--json is the same for programs', async (t) => {
  const { verify, write } = await download(t, { hasLarge: true });
  const { code, stdout } = await verify('', '--json');
  t.equal(code, 0);
  t.match(JSON.parse(stdout), {
    verdict: 'verified',
    summary: /^All 1006 lines/,
    trust_roots: /^the file /,
    lines: { verified: 1006, not_verified: 0, could_not_check: 0 },
    objects: 4,
    manifests: 3,
    existed_by: { earliest: '2025-06-07T12:00:02.000Z', latest: '2025-06-07T12:00:02.000Z' },
    exports: [
      {
        id: EXPORT_ID,
        project: PROJECT,
        environment: 'live',
        first_day: '2025-06-06',
        last_day: '2025-06-08',
        is_complete: false,
        logs: [{ origin: service.origin, start: 0, from: 0, to: fourth.treeSize, gaps: [] }],
      },
    ],
    not_covered: { objects: [], total: 0 },
    problems: [],
    problems_total: 0,
  });
  await write(PATHS.large, objectBytes(large.lines.map(({ submission }) => ({ submission, bundle: {} }))));
  const wrong = await verify('', '--json');
  t.equal(wrong.code, 1);
  const { verdict, lines, problems, problems_total: total } = JSON.parse(wrong.stdout);
  t.match({ verdict, lines, total }, { verdict: 'not_verified', lines: { not_verified: 1000 }, total: 1001 });
  t.equal(problems.length, 100);
  t.match(problems[99], {
    file: PATHS.large,
    line: 100,
    reason: /\/media_type must be/,
    verdict: 'not_verified',
  });
});

t.test('one object or manifest verifies on its own, without a word about completeness', async (t) => {
  const { verify, write } = await download(t, { hasLarge: true });
  const object = await verify(PATHS.large);
  t.match(object, {
    code: 0,
    stdout: /No manifest covers 1 object: nothing proves that none is missing\.\n$/,
  });
  const manifest = await verify(PATHS.manifest);
  t.match(manifest, { code: 0, stdout: /The manifest is verified; its objects were not checked\.\n$/ });
  await write('renamed.jsonl.gz', gzipSync(objectBytes(third.lines)));
  t.match(await verify('renamed.jsonl.gz'), { code: 0, stdout: /^lines +2 verified/ });
});

/** What is done to a download, and what is said of which file. */
type Tampering = [what: string, change: (files: Download) => Promise<unknown>, said: RegExp];

const text = (lines: readonly unknown[]) => Buffer.from(objectBytes(lines)).toString();

function edited(line: Line, members: JsonObject): Line {
  return { ...line, submission: { ...line.submission, ...members } };
}

function resigned(index: number, objects: ManifestObject[], change: Partial<ManifestFields>, by = service) {
  return signManifest(by, { ...dayFields(index, objects), ...change });
}

const thirdObject = describeObject(third, objectBytes(third.lines));
const otherService = await makeService(t.testdir({ other: {} }));

const TAMPERINGS: Tampering[] = [
  [
    'a status, which only the manifest protects',
    ({ write }) =>
      write(PATHS.third, objectBytes([edited(third.lines[0]!, { status: 'partial' }), third.lines[1]])),
    /third: its SHA-256 is not the one in its manifest, which lists revision 1/,
  ],
  [
    'metadata',
    ({ write }) =>
      write(
        PATHS.third,
        objectBytes([edited(third.lines[0]!, { metadata: { schema: 'x' } }), third.lines[1]]),
      ),
    /third:1: the metadata is not what was attested/,
  ],
  [
    'metadata of a redacted submission',
    ({ write }) =>
      write(
        PATHS.third,
        objectBytes([
          third.lines[0],
          edited(third.lines[1]!, { metadata_state: 'redacted', redacted_at: '2025-06-08T00:00:00Z' }),
        ]),
      ),
    /third:2: .*more than its schema is there/,
  ],
  [
    'a bundle swapped',
    ({ write }) =>
      write(
        PATHS.third,
        objectBytes([{ ...third.lines[0], bundle: third.lines[1]!.bundle }, third.lines[1]]),
      ),
    /third:1: .*the artifact is not the one/,
  ],
  [
    'a line removed',
    ({ write }) => write(PATHS.third, objectBytes(third.lines.slice(1))),
    /third: it has 1 line, not 2 as its manifest says/,
  ],
  [
    'a line added',
    ({ write }) => write(PATHS.third, objectBytes([...third.lines, ...fourth.lines])),
    /third:3: it is of btc_.*, not of btc_.*other leaves/,
  ],
  [
    'a line twice',
    ({ write }) => write(PATHS.third, objectBytes([third.lines[0], third.lines[0]])),
    /third:2: leaf \d+ is there twice/,
  ],
  [
    'lines in another order',
    ({ write }) => write(PATHS.third, objectBytes([...third.lines].reverse())),
    /third:2: leaf \d+ is after leaf \d+/,
  ],
  [
    "another project's line",
    ({ write }) => write(PATHS.third, objectBytes([third.lines[0], foreign.lines[0]])),
    /third:2: .*it is of prj_01JX5WQ0ZZZZZZZZZZZZZZZZZ0, not of prj_/,
  ],
  [
    'an object of another batch',
    ({ write }) => write(PATHS.third, objectBytes(fourth.lines)),
    /third:1: it is of btc_/,
  ],
  [
    'an object missing',
    ({ at }) => rm(at(PATHS.third)),
    /manifest: the object btc_.*\.jsonl, which it lists, is missing/,
  ],
  [
    'an object more',
    ({ write }) => write(PATHS.third.replace(third.id, fourth.id), objectBytes(fourth.lines)),
    /2025\/06\/07\/btc_.*: the manifest of its folder is complete and does not list it/,
  ],
  [
    'an object under a second name',
    ({ write }) => write(`${PATHS.fourth}.gz`, gzipSync(objectBytes(fourth.lines))),
    /jsonl.gz: attestations.*06\/08\/manifest.json covers leaves .* and does not list it/,
  ],
  [
    'a manifest by another key',
    ({ write }) => write(PATHS.manifest, resigned(1, [thirdObject], {}, otherService)),
    /manifest: the manifest is not signed by a key of the trust roots/,
  ],
  [
    'a manifest of another export',
    ({ write }) =>
      write(PATHS.manifest, resigned(1, [thirdObject], { exportId: EXPORT_ID.replace('WQ1', 'WQ2') })),
    /manifest: it is of another export than .*06\/06\/manifest.json/,
  ],
  [
    'a manifest of another day',
    ({ write }) => write(PATHS.manifest, resigned(1, [thirdObject], { day: '2025-06-05' })),
    /manifest: it is the manifest of 2025-06-05 of exp_.*, in another folder/,
  ],
  [
    'a manifest of an older revision',
    ({ write }) =>
      write(PATHS.manifest, resigned(1, [{ ...thirdObject, sha256: '0'.repeat(64) }], { revision: 1 })),
    /third: its SHA-256 is not the one in its manifest/,
  ],
  [
    'a manifest changed',
    async ({ write, at }) =>
      write(
        PATHS.manifest,
        (await readFile(at(PATHS.manifest), 'utf8')).replace('"payload":"e', '"payload":"f'),
      ),
    /manifest: /,
  ],
  [
    'a manifest cut off',
    async ({ write, at }) => write(PATHS.manifest, (await readFile(at(PATHS.manifest))).subarray(0, -1)),
    /manifest: a manifest is not JSON, or is cut off/,
  ],
  ['an empty manifest', ({ write }) => write(PATHS.manifest, ''), /manifest: a manifest is not JSON/],
  ['an empty object', ({ write }) => write(PATHS.third, ''), /third: it has 0 lines, not 2/],
  [
    'CR LF',
    ({ write }) => write(PATHS.third, text(third.lines).replaceAll('\n', '\r\n')),
    /third:1: the line ends with CR LF/,
  ],
  [
    'a byte order mark',
    ({ write }) => write(PATHS.third, `\ufeff${text(third.lines)}`),
    /third:1: the line begins with a byte order mark/,
  ],
  ['NUL', ({ write }) => write(PATHS.third, `${text(third.lines)}\0\n`), /third:3: the line is not JSON/],
  [
    'invalid UTF-8',
    ({ write }) => write(PATHS.third, Buffer.concat([Buffer.from(text(third.lines)), Buffer.of(0xff, 0x0a)])),
    /third:3: the line is not text in UTF-8/,
  ],
  [
    'an empty line',
    ({ write }) => write(PATHS.third, `${text(third.lines)}\n`),
    /third:3: the line is empty/,
  ],
  [
    'no newline at the end',
    ({ write }) => write(PATHS.third, text(third.lines).slice(0, -1)),
    /third:2: the last line has no newline: it is cut off/,
  ],
  [
    'garbage at the end',
    ({ write }) => write(PATHS.third, `${text(third.lines)}garbage`),
    /third:3: the last line has no newline/,
  ],
  [
    'a huge line',
    ({ write }) => write(PATHS.third, `${text(third.lines)}${' '.repeat(3 * 1024 * 1024)}\n`),
    /third:3: a line is longer than 1 MiB/,
  ],
];

for (const [what, change, said] of TAMPERINGS) {
  t.test(`${what} ends with 1 and names the place`, async (t) => {
    const files = await download(t);
    await change(files);
    const { code, stdout, stderr } = await files.verify();
    t.match({ code, stderr }, { code: 1, stderr: '' });
    const short = stdout.replaceAll(PATHS.third, 'third').replaceAll(PATHS.manifest, 'manifest');
    t.match(
      short
        .split('\n')
        .filter((line) => line.startsWith('FAILED'))
        .join('\n'),
      said,
    );
    t.match(stdout, /\nNot verified: \d+ problems? in \d objects? and \d verified manifests?\.\n$/);
  });
}

t.test('a folder or day that is missing shows in the manifest after it', async (t) => {
  const middle = await download(t);
  await rm(middle.at(folderOf('2025-06-07')), { recursive: true });
  const last = describeObject(fourth, objectBytes(fourth.lines));
  const text = await middle.verify();
  t.match(
    text,
    { code: 0, stdout: `not ${large.treeSize} to ${third.treeSize}` },
    'before a day that is not over',
  );
  await middle.write(
    `${folderOf('2025-06-08')}/manifest.json`,
    signManifest(service, { ...dayFields(2, [last]), isComplete: true }),
  );
  const gap = `leaves ${large.treeSize} to ${third.treeSize - 1} of ${service.origin} are covered by no manifest`;
  t.match(await middle.verify(), { code: 1, stdout: gap });
  const oldest = await download(t);
  await rm(oldest.at(folderOf('2025-06-06')), { recursive: true });
  t.match(await oldest.verify(), {
    code: 1,
    stdout: `leaves 0 to ${large.treeSize - 1} of ${service.origin} are covered`,
  });
});

t.test('an object whose submissions all left the filter is empty, and is listed so', async (t) => {
  const { verify, write } = await download(t);
  await write(PATHS.third, '');
  const empty = describeObject({ ...third, lines: [] }, new Uint8Array());
  await write(PATHS.manifest, signManifest(service, dayFields(1, [empty])));
  t.match(await verify(), { code: 0, stdout: /^lines +4 verified\nobjects +3\n/ });
  t.match(await verify(PATHS.third), { code: 2, stdout: /not checked {2}.*jsonl: it has no lines/ });
});
