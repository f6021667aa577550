/** Every way in which what was recorded, or what is there, is broken on purpose: the judge has to notice each. */
import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto';
import type { Acknowledged, CampaignRecord, Delivered } from '../record.js';
import type { Evidence } from './check.js';
import type { SeenLog } from './observe.js';

/** What a sabotage works on. It changes nothing of what it is given. */
export type Sabotage = { name: string; break: (evidence: Evidence, keys: LogKeys) => Evidence };

/** Private keys in PEM, by environment. */
export type LogKeys = Record<string, string>;

/** Breaks one log. */
function ofLog(name: string, change: (log: SeenLog) => Partial<SeenLog>): Sabotage {
  return {
    name,
    break: (evidence) => {
      const [first, ...others] = evidence.observed.logs;
      const logs = [{ ...first!, ...change(first!) }, ...others];
      return { ...evidence, observed: { ...evidence.observed, logs } };
    },
  };
}

/** Breaks the record. */
function ofRecord(
  name: string,
  change: (record: CampaignRecord, evidence: Evidence) => Partial<CampaignRecord>,
): Sabotage {
  return {
    name,
    break: (evidence) => ({
      ...evidence,
      record: { ...evidence.record, ...change(evidence.record, evidence) },
    }),
  };
}

/** Records a checkpoint that the log's own key has signed. */
function forged(name: string, change: (log: SeenLog) => { size: number; root: Buffer }): Sabotage {
  return {
    name,
    break: (evidence, keys) => {
      const log = evidence.observed.logs[0]!;
      const { size, root } = change(log);
      const note = signCheckpoint(log.known.origin, size, root, keys[log.environment] ?? '');
      const shown = [
        ...evidence.record.shown,
        { what: 'shown' as const, environment: log.environment, note, where: 'forged' },
      ];
      return { ...evidence, record: { ...evidence.record, shown } };
    },
  };
}

function signCheckpoint(origin: string, size: number, root: Buffer, pem: string): string {
  const body = `${origin}\n${size}\n${root.toString('base64')}\n`;
  const raw = createPublicKey(pem).export({ type: 'spki', format: 'der' }).subarray(-32);
  const id = createHash('sha256').update(`${origin}\n`).update(Buffer.of(1)).update(raw).digest();
  const signature = sign(null, Buffer.from(body), createPrivateKey(pem));
  return `${body}\n— ${origin} ${Buffer.concat([id.subarray(0, 4), signature]).toString('base64')}\n`;
}

const ROOT = createHash('sha256').update('another history').digest();

function middle<T>(list: readonly T[]): number {
  return Math.floor(list.length / 2);
}

/** The list with one member replaced, or left out. */
function change<T>(list: readonly T[], at: number, to: (member: T) => T | undefined): T[] {
  return list.flatMap((member, i) => (i === at ? (to(member) ?? []) : [member]));
}

function changeAcknowledged(name: string, to: (made: Acknowledged) => Acknowledged): Sabotage {
  return ofRecord(name, ({ acknowledged }) => ({
    acknowledged: change(acknowledged, middle(acknowledged), to),
  }));
}

/** Changes one delivery and leaves out every other of its event to the same owner. */
function changeDelivered(name: string, to: (delivery: Delivered) => Delivered | undefined): Sabotage {
  return ofRecord(name, ({ delivered }) => {
    const at = middle(delivered);
    const one = delivered[at]!;
    const others = delivered.filter(
      (each, i) => i === at || each.event !== one.event || each.owner !== one.owner,
    );
    return { delivered: change(others, others.indexOf(one), to) };
  });
}

/** Those of the log that anybody can fetch, and of what the campaign recorded. */
export const SABOTAGES: readonly Sabotage[] = [
  ofLog('a leaf is dropped', ({ entries }) => ({
    entries: change(entries, middle(entries), () => undefined),
  })),
  ofLog('the last leaf is dropped', ({ entries }) => ({ entries: entries.slice(0, -1) })),
  ofLog('two leaves are swapped', ({ entries }) => {
    const at = middle(entries);
    const swapped = [...entries];
    [swapped[at - 1], swapped[at]] = [swapped[at]!, swapped[at - 1]!];
    return { entries: swapped };
  }),
  ofLog('a leaf is another', ({ entries }) => ({
    entries: change(entries, 0, (entry) => Buffer.concat([entry, Buffer.from(' ')])),
  })),
  ofLog('a leaf occurs twice', ({ entries }) => ({ entries: [...entries, entries[0]!] })),
  ofLog('a leaf is added that nobody sent', ({ entries }) => ({ entries: [...entries, Buffer.from('{}')] })),
  ofLog('a tile is another', ({ tiles }) => ({ tiles: new Map(tiles).set('0/0', Buffer.alloc(32)) })),
  ofLog('a tile is missing', ({ tiles }) => ({
    tiles: new Map([...tiles].filter(([key]) => key !== '0/0')),
  })),
  ofLog('the newest checkpoint is unsigned', ({ note }) => ({
    note: note.replace(/— (.*) .*\n/, '— $1 AAAA\n'),
  })),
  forged('a checkpoint is forked', ({ entries }) => ({ size: middle(entries), root: ROOT })),
  forged('the newest checkpoint is forked', ({ entries }) => ({ size: entries.length, root: ROOT })),
  forged('a checkpoint is of leaves that are gone', ({ entries }) => ({
    size: entries.length + 1,
    root: ROOT,
  })),
  ofRecord('a checkpoint is of another log', ({ shown }) => ({
    shown: change(shown, 0, (one) => ({
      ...one,
      note: one.note.replaceAll('log.example.com', 'log.example.org'),
    })),
  })),
  ofRecord('a checkpoint is signed by somebody else', ({ shown }) => ({
    shown: change(shown, 0, (one) => ({
      ...one,
      note: one.note.replace(/\n(\d+)\n/, (_, size) => `\n${size}0\n`),
    })),
  })),
  changeAcknowledged('an acknowledged one is lost', (made) => ({
    ...made,
    id: 'sub_0',
    leaf: ROOT.toString('hex'),
  })),
  changeAcknowledged('an acknowledged one has no row', (made) => ({ ...made, id: 'sub_0' })),
  changeAcknowledged('an acknowledged one is at another index', (made) => ({
    ...made,
    index: made.index + 1,
  })),
  changeAcknowledged('an acknowledged one has another leaf', (made) => ({
    ...made,
    leaf: ROOT.toString('hex'),
  })),
  changeAcknowledged('an acknowledged one is of another artifact', (made) => ({ ...made, artifact: 'ab' })),
  ofRecord('a key made two', ({ acknowledged }) => {
    const [one, other] = acknowledged.filter(({ key }) => key !== undefined);
    return {
      acknowledged: [...acknowledged, { ...one!, id: other!.id, index: other!.index, leaf: other!.leaf }],
    };
  }),
  ofRecord('one is there that nobody sent', ({ sent, acknowledged }) => {
    const { artifact } = acknowledged[middle(acknowledged)]!;
    return { sent: sent.filter((each) => each.artifact !== artifact) };
  }),
  ofRecord('one is in another project', ({ sent, acknowledged }) => {
    const { artifact, owner } = acknowledged[middle(acknowledged)]!;
    const other = acknowledged.find((each) => each.owner !== owner)!.owner;
    return { sent: sent.map((each) => (each.artifact === artifact ? { ...each, owner: other } : each)) };
  }),
  changeDelivered('an event is forgotten', () => undefined),
  changeDelivered('an event was never taken', (delivery) => ({ ...delivery, taken: false })),
  changeDelivered('an event went to somebody else', (delivery) => ({
    ...delivery,
    owner: delivery.owner === 'ada' ? 'bob' : 'ada',
  })),
  changeDelivered('an event is signed by nobody', (delivery) => ({ ...delivery, genuine: false })),
  ofRecord('an event has two ids', ({ delivered }) => ({
    delivered: [...delivered, { ...delivered[0]!, event: 'evt_another' }],
  })),
  ofRecord('two events have one id', ({ delivered }) => {
    const other = delivered.find(({ event }) => event !== delivered[0]!.event)!;
    return { delivered: [...delivered, { ...other, event: delivered[0]!.event }] };
  }),
];
