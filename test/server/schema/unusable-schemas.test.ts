/** Files of an operator that cannot be used as schemas. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { loadSchemas, SchemaLoadError } from '../../../src/server/schema/registry.js';

t.test('unusable files are reported together, each by its path', async (t) => {
  const remote = { $ref: 'https://example.com/other.json' };
  const files: Record<string, [schema: unknown, problem: string]> = {
    'Upper.json': [{}, 'its name must be at most 64 of a-z, 0-9, ., _ and -, from a letter or digit on'],
    '-dash.json': [{}, 'its name must be'],
    [`${'x'.repeat(65)}.json`]: [{}, 'its name must be'],
    'purl.json': [{}, 'there is another schema named purl'],
    'text.json': ['{"type":', 'it is not JSON:'],
    'list.json': [[], 'it must hold a JSON object'],
    'true.json': ['true', 'it must hold a JSON object'],
    'draft7.json': [
      { $schema: 'http://json-schema.org/draft-07/schema#' },
      'its $schema must be https://json-schema.org/draft/2020-12/schema',
    ],
    'async.json': [{ $async: true }, 'it must not have $async'],
    'type.json': [{ properties: { x: { type: 'text' } } }, 'it is not a JSON Schema: /properties/x/type'],
    'keyword.json': [{ propertys: {} }, 'strict mode: unknown keyword: "propertys"'],
    'format.json': [{ properties: { x: { format: 'colour' } } }, 'unknown format "colour"'],
    'url.json': [{ properties: { x: { format: 'url' } } }, 'unknown format "url"'],
    'pattern.json': [{ properties: { x: { pattern: '(' } } }, 'Invalid regular expression: '],
    'remote.json': [
      { properties: { x: remote } },
      'it refers to https://example.com/other.json, which is not in the file',
    ],
    'sibling.json': [
      { properties: { x: { $ref: 'purl.json' } } },
      'it refers to purl.json, which is not in the file',
    ],
    'nowhere.json': [
      { properties: { x: { $ref: '#/$defs/x' } } },
      'it refers to #/$defs/x, which is not in the file',
    ],
    'closed.json': [{ additionalProperties: false }, 'it must allow a member schema with the value closed'],
    'named.json': [
      { properties: { schema: { const: 'other' } } },
      'it must allow a member schema with the value named',
    ],
    'relative.json': [{ 'x-predicate-type': 'test/v1' }, 'its x-predicate-type must be an absolute URI'],
    'spaced.json': [{ 'x-predicate-type': 'urn:a b' }, 'its x-predicate-type must be an absolute URI'],
    'number.json': [{ 'x-predicate-type': 7 }, 'its x-predicate-type must be an absolute URI'],
    'long.json': [
      { 'x-predicate-type': `urn:${'x'.repeat(509)}` },
      'its x-predicate-type must be an absolute URI of at most 512 characters',
    ],
    'ours.json': [
      { 'x-predicate-type': 'URN:attestation-service:submission:v1' },
      'its x-predicate-type must not begin with urn:attestation-service:',
    ],
    'large.json': [`{"title":"${'x'.repeat(1 << 20)}"}`, 'it is larger than 1 MiB'],
  };
  const dir = t.testdir({ 'good.json': '{}' });
  for (const [name, [schema]] of Object.entries(files)) {
    writeFileSync(join(dir, name), typeof schema === 'string' ? schema : JSON.stringify(schema));
  }
  mkdirSync(join(dir, 'folder.json'));
  files['folder.json'] = ['', 'it is not a file'];
  try {
    loadSchemas({ dir });
    t.fail('they are accepted');
  } catch (error) {
    t.type(error, SchemaLoadError);
    const [title, ...lines] = (error as Error).message.split('\n');
    t.equal(title, 'metadata schemas cannot be used:');
    t.equal(lines.length, Object.keys(files).length, lines.join('\n'));
    for (const [name, [, problem]] of Object.entries(files)) {
      const line = lines.find((one) => one.startsWith(`${join(dir, name)}: `)) ?? '';
      t.ok(line.startsWith(`${join(dir, name)}: ${problem}`), `${name}: ${line.slice(dir.length)}`);
    }
  }
});

t.test('a missing directory is reported', async (t) => {
  t.throws(() => loadSchemas({ dir: join(t.testdir({}), 'gone') }), { message: /gone: ENOENT/ });
});
