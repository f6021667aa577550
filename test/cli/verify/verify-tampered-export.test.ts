/** `attest verify --export` names the place of every manipulation. */
import { readFile, rm } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import type { JsonObject } from '@bufbuild/protobuf';
import t from 'tap';
import type { ManifestFields, ManifestObject } from '../../../src/proof/export/manifest-fields.js';
import { describeObject, type Line, objectBytes } from '../../proof/export/export-sample.js';
import { EXPORT_ID, signManifest } from '../../proof/export/manifest-sample.js';
import { makeService } from '../../proof/sample.js';
import {
  type Download,
  dayFields,
  download,
  foreign,
  fourth,
  PATHS,
  service,
  third,
} from './downloaded-export.js';

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
    /third:2: .*has more than its schema/,
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
    /third:2: leaf \d+ occurs twice/,
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
    /third: its SHA-256 is not the one in its manifest/,
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
