/** Formats of text in schemas of operators. */
import t from 'tap';
import { problemsOf, withSchemas } from './operator-schemas.js';

t.test('text made to take long is answered by every format of JSON Schema', async (t) => {
  const formats = [
    'date-time',
    'date',
    'time',
    'duration',
    'email',
    'hostname',
    'ipv4',
    'ipv6',
    'uri',
    'uuid',
  ];
  const international = ['iri', 'iri-reference', 'idn-hostname', 'idn-email'];
  const more = [
    ...international,
    'uri-reference',
    'uri-template',
    'json-pointer',
    'relative-json-pointer',
    'regex',
  ];
  const schemas = withSchemas(t, {
    'all.json': {
      properties: Object.fromEntries([...formats, ...more].map((format) => [format, { format }])),
    },
  });
  const texts = [
    'ü',
    'ü.',
    'http://ü/',
    'http://a:1@::',
    'a.',
    '1:',
    '%20',
    'a@',
    '{a}',
    '0',
    '~0',
    '-',
    '(',
  ];
  for (const text of texts) {
    const long = `${text.repeat(60_000 / text.length)} \n`;
    const metadata = Object.fromEntries([...formats, ...more].map((format) => [format, long]));
    const problems = problemsOf({ schema: 'all', ...metadata }, schemas);
    t.ok(problems.length >= formats.length, text);
    t.ok(problems.join().length < 2000, text);
  }
});

t.test('formats of text in any script are those of their ASCII form', async (t) => {
  const schemas = withSchemas(t, {
    'i.json': {
      properties: Object.fromEntries(
        ['iri', 'iri-reference', 'idn-hostname', 'idn-email'].map((format) => [format, { format }]),
      ),
    },
  });
  const texts: Record<string, { good: string[]; bad: string[] }> = {
    iri: { good: ['https://bücher.example/ü?ü#ü', 'urn:a:b'], bad: ['/ü', 'https://a b', 'ü', 'a:\ud800'] },
    'iri-reference': { good: ['/ü', '../ä', '#ö', 'https://a.example', ''], bad: ['a b', '%', '\\ü'] },
    'idn-hostname': {
      good: ['bücher.example', 'example.com', '例え.テスト'],
      bad: ['ü b', 'ü/a', 'a/b', 'ü_a', '-a', `${'ü'.repeat(300)}`],
    },
    'idn-email': {
      good: ['jörg@bücher.example', 'a@b.example'],
      bad: ['jörg', '@ü.example', 'a@ü/b', 'a b@ü.example'],
    },
  };
  for (const [format, { good, bad }] of Object.entries(texts)) {
    for (const text of good) t.strictSame(problemsOf({ schema: 'i', [format]: text }, schemas), [], text);
    for (const text of bad) t.equal(problemsOf({ schema: 'i', [format]: text }, schemas).length, 1, text);
  }
});
