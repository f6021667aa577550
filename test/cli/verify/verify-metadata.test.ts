/** Metadata beside a bundle: verified by its salt, printed only if it is what was attested. */
import { writeFile } from 'node:fs/promises';
import t from 'tap';
import { toHex } from '../../../src/proof/bytes/encoding.js';
import { METADATA } from '../../proof/sample.js';
import { sample } from '../../proof/verifying.js';
import { runHere } from '../../support/calling/run-cli.js';
import { folder } from './artifact-folder.js';

t.test('metadata is verified by its salt', async (t) => {
  const { args, at } = folder(t, { 'metadata.json': JSON.stringify(METADATA) });
  const salt = toHex(sample.salt);
  const opened = await runHere([...args, '--metadata', `@${at('metadata.json')}`, '--metadata-salt', salt]);
  t.match(opened, { code: 0 });
  const other = JSON.stringify({ ...METADATA, purl: 'pkg:npm/other' });
  const refused = await runHere([...args, '--metadata', other, '--metadata-salt', salt]);
  t.match(refused, { code: 1, stdout: /metadata is not what was attested/ });
});

t.test(
  '--json has the metadata under verified, if it is what was attested, and never otherwise',
  async (t) => {
    const { args } = folder(t);
    const opened = ['--metadata', JSON.stringify(METADATA), '--metadata-salt', toHex(sample.salt)];
    const found = await runHere([...args, ...opened, '--json']);
    t.strictSame([found.code, JSON.parse(found.stdout).verified], [0, { metadata: METADATA }]);
    const others: [what: string, code: number, more: string[]][] = [
      ['without metadata', 0, []],
      ['of another project', 1, [...opened, '--project', 'prj_01JX5WQ0ZZZZZZZZZZZZZZZZZ0']],
      ['with other metadata', 1, ['--metadata', '{"schema":"purl"}', ...opened.slice(2)]],
      ['without a witness', 1, [...opened, '--require-witness', 'b']],
    ];
    for (const [what, code, more] of others) {
      const other = await runHere([...args, ...more, '--json']);
      t.strictSame([other.code, 'verified' in JSON.parse(other.stdout)], [code, false], what);
    }
  },
);

t.test('metadata that differs from its text is rejected', async (t) => {
  const { args, at } = folder(t, { 'twice.json': '{"schema":"purl","schema":"other"}' });
  const file = at('latin1.json');
  await writeFile(file, Buffer.from('{"schema":"caf\u00e9"}', 'latin1'));
  for (const [metadata, message] of [
    [`@${at('twice.json')}`, 'has a member twice'],
    ['{"schema":"purl","schema":"other"}', 'has a member twice'],
    [`@${file}`, 'is not text in UTF-8'],
    ['[]', 'is not a JSON object'],
  ] as const) {
    const refused = await runHere([...args, '--metadata', metadata, '--metadata-salt', '00']);
    t.same(refused, { code: 2, stdout: '', stderr: `error: --metadata ${message}\n` }, metadata);
  }
});
