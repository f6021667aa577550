import { rm } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { describeObject, objectBytes } from '../../proof/export/export-sample.js';
import { EXPORT_ID, signManifest } from '../../proof/export/manifest-sample.js';
import { PROJECT } from '../../proof/sample.js';
import { dayFields, download, folderOf, fourth, large, PATHS, service, third } from './downloaded-export.js';

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

t.test('one object or manifest verifies on its own, without a claim of completeness', async (t) => {
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

t.test('an object whose submissions no longer match the filter is empty and listed as such', async (t) => {
  const { verify, write } = await download(t);
  await write(PATHS.third, '');
  const empty = describeObject({ ...third, lines: [] }, new Uint8Array());
  await write(PATHS.manifest, signManifest(service, dayFields(1, [empty])));
  t.match(await verify(), { code: 0, stdout: /^lines +4 verified\nobjects +3\n/ });
  t.match(await verify(PATHS.third), { code: 2, stdout: /not checked {2}.*jsonl: it has no lines/ });
});
