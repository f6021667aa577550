/** What becomes of an alarm while it holds, and when it comes again. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Alarm } from '../../../src/cli/audit/alarm/alarm.js';
import { createAlarmDispatcher } from '../../../src/cli/audit/alarm/alarm-dispatcher.js';
import type { Outcome } from '../../../src/cli/audit/monitor.js';
import { noMetrics } from '../../../src/cli/audit/output/audit-metrics.js';
import { utf8 } from '../../../src/proof/bytes/encoding.js';
import { sha256 } from '../../../src/proof/bytes/primitives.js';
import { noteKey } from '../../../src/proof/log/note.js';

const ORIGIN = 'live.log.example';
const key = noteKey(ORIGIN, sha256(utf8('a key')));
const seen = (text: string) =>
  ({
    origin: ORIGIN,
    from: text,
    envelope: `${text}\n\nsigned`,
    note: { text },
    size: 5,
    rootHash: sha256(utf8(text)),
  }) as never;
const SPLIT: Alarm = {
  kind: 'split_view',
  origin: ORIGIN,
  message: 'two checkpoints',
  evidence: { first: seen('one'), second: seen('two') },
};
const outcomeOf = (...alarms: Alarm[]) =>
  ({ alarms, watched: { log: { key }, cosigners: [] }, unreachable: undefined }) as unknown as Outcome;

function openDispatcher(t: Test, evidence: string) {
  const sent: string[] = [];
  const said: string[] = [];
  let time = '2026-01-02T03:04:05.000Z';
  const dispatcher = createAlarmDispatcher({
    events: {
      alarm: (_: Alarm, folder?: string) =>
        said.push(`alarm ${folder === undefined ? 'without' : 'with'} evidence`),
      resolved: () => said.push('resolved'),
      trouble: (_: string, message: string) => said.push(message),
    } as never,
    metrics: noMetrics(),
    webhook: { send: ({ id }) => void sent.push(id), settle: async () => {} },
    evidence,
    now: () => new Date(time),
  });
  const at = (next: string) => {
    time = next;
  };
  t.teardown(() => rm(evidence, { recursive: true, force: true }));
  return { dispatcher, sent, said, at };
}

t.test('evidence that could not be written is written once it can be, and then stays', async (t) => {
  const evidence = join(t.testdir(), 'evidence');
  await writeFile(evidence, 'a file in its place');
  const { dispatcher, said, at } = openDispatcher(t, evidence);
  await dispatcher.take(outcomeOf(SPLIT));
  t.match(said, ['alarm without evidence', /^the evidence cannot be written: /]);
  await rm(evidence);
  await mkdir(evidence);
  await dispatcher.take(outcomeOf(SPLIT));
  const [folder = ''] = await readdir(evidence);
  const path = join(evidence, folder, 'evidence.json');
  const first = await readFile(path, 'utf8');
  t.match(JSON.parse(first), { kind: 'split_view', found_at: '2026-01-02T03:04:05.000Z' });
  await dispatcher.take(outcomeOf());
  at('2026-02-02T03:04:05.000Z');
  await dispatcher.take(outcomeOf(SPLIT));
  t.match(said.slice(2), ['resolved', 'alarm with evidence']);
  t.equal(await readFile(path, 'utf8'), first, 'it says when it was found first');
});

t.test('an alarm that comes again later has another webhook id', async (t) => {
  const { dispatcher, sent, at } = openDispatcher(t, join(t.testdir(), 'evidence'));
  const few: Alarm = { kind: 'unwitnessed', origin: ORIGIN, message: 'by no witness', subject: 'quorum' };
  for (const time of ['03:04:05', '03:59:59', '04:00:00']) {
    at(`2026-01-02T${time}.000Z`);
    await dispatcher.take(outcomeOf(few));
    await dispatcher.take(outcomeOf(few));
    await dispatcher.take(outcomeOf());
  }
  t.equal(sent.length, 3);
  t.equal(sent[0], sent[1], 'within the hour it is the same');
  t.not(sent[1], sent[2]);
  t.match(sent, [/^alm_[0-9a-f]{32}_2026010203$/]);
});
