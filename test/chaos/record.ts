/** What the campaign saw and was told, in a file of its own: the service has no part in it. */
import { appendFileSync, readFileSync } from 'node:fs';
import type { EnvironmentName } from '../../src/protocol/environment.js';

/** A request to create went out, once more; artifacts are unique to their creation. */
export type Sent = { what: 'sent'; owner: string; artifact: string; key?: string };
/** A 201 came. */
export type Acknowledged = {
  what: 'acknowledged';
  owner: string;
  artifact: string;
  key?: string;
  id: string;
  index: number;
  leaf: string;
};
/** A change of metadata was answered with 200. */
export type Changed = { what: 'changed'; id: string; to: 'redacted' | 'corrected'; purl?: string };
/** The log showed this checkpoint, in the open or in a bundle. */
export type Shown = { what: 'shown'; environment: EnvironmentName; note: string; where: string };
/** The endpoint got this; `taken` when it answered 2xx. */
export type Delivered = {
  what: 'delivered';
  owner: string;
  event: string;
  type: string;
  submission: string;
  taken: boolean;
  genuine: boolean;
};
/** Something that must not be was seen while the faults went on. */
export type Wrong = { what: 'wrong'; problem: string };

export type Line = Sent | Acknowledged | Changed | Shown | Delivered | Wrong;

export type RecordWriter = { path: string; write(line: Line): void };

/** Everything that was recorded, by kind. */
export type CampaignRecord = {
  sent: Sent[];
  acknowledged: Acknowledged[];
  changed: Changed[];
  shown: Shown[];
  delivered: Delivered[];
  wrong: Wrong[];
};

/** Adds lines to a file. They are in it when `write` returns. */
export function openRecord(path: string): RecordWriter {
  return { path, write: (line) => appendFileSync(path, `${JSON.stringify(line)}\n`) };
}

/** Reads such a file. */
export function readRecord(path: string): CampaignRecord {
  const record: CampaignRecord = {
    sent: [],
    acknowledged: [],
    changed: [],
    shown: [],
    delivered: [],
    wrong: [],
  };
  for (const text of readFileSync(path, 'utf8').split('\n').filter(Boolean)) {
    const line = JSON.parse(text) as Line;
    (record[line.what] as Line[]).push(line);
  }
  return record;
}
