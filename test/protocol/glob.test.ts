import t from 'tap';
import { matchesGlob } from '../../src/protocol/glob.js';

const MATCHES: [pattern: string, text: string][] = [
  ['', ''],
  ['*', ''],
  ['*', 'repo:acme/app'],
  ['repo:acme/app:*', 'repo:acme/app:ref:refs/heads/main'],
  ['repo:acme/*', 'repo:acme/app:ref:refs/heads/main'],
  ['*:environment:prod', 'repo:acme/app:environment:prod'],
  ['a*b*c', 'abc'],
  ['a*b*c', 'a-b-b-c'],
  ['**', 'x'],
  ['a.c', 'a.c'],
  ['a\nb*', 'a\nb\nc'],
];

const OTHERS: [pattern: string, text: string][] = [
  ['', 'a'],
  ['repo:acme/app', 'repo:acme/app:ref'],
  ['repo:acme/app', 'x-repo:acme/app'],
  ['repo:acme/*', 'repo:acme-evil/app'],
  ['ab*ba', 'aba'],
  ['a*b*c', 'acb'],
  ['a*x*c', 'a-c'],
  ['a*bc*c', 'a-bc'],
  ['a.c', 'abc'],
  ['A', 'a'],
  ['[a]', 'a'],
  ['a?', 'ab'],
];

t.test('a glob matches the whole text', async (t) => {
  for (const [pattern, text] of MATCHES) t.ok(matchesGlob(pattern, text), `${pattern} matches ${text}`);
  for (const [pattern, text] of OTHERS)
    t.notOk(matchesGlob(pattern, text), `${pattern} does not match ${text}`);
});

t.test('a hostile pattern takes no more than its length times that of the text', async (t) => {
  const text = 'a'.repeat(100_000);
  const startedAt = process.cpuUsage();
  t.notOk(matchesGlob(`${'a*'.repeat(1_000)}b`, text));
  t.notOk(matchesGlob(`*${'ab*'.repeat(1_000)}`, text));
  t.ok(process.cpuUsage(startedAt).user < 1_000_000);
});
