/** Checks the lines of an object together: of one batch, in order, without duplicates, as many as in the manifest. */
import type { ManifestFields, ManifestObject } from './manifest-fields.js';
import type { LineFacts } from './verify-line.js';

/** Facts about an object besides its lines. */
export type ObjectExpectation = {
  /** From the object's name, if that is a batch's id. */
  readonly batchId?: string | undefined;
  /** Its entry in a verified manifest. */
  readonly listed?: { readonly object: ManifestObject; readonly manifest: ManifestFields } | undefined;
};

/** The part of a log that an object's batch has. */
export type BatchRange = Pick<LineFacts, 'log' | 'firstIndex' | 'treeSize'>;

/** The check of one object. */
export type ObjectCheck = {
  /** Adds the next line and returns its problem. */
  add(facts: LineFacts): string[];
  /** Ends the object after this number of lines, unreadable ones included, and returns its problem. */
  end(lines: number): string[];
  /** The range of the batch: the manifest's, or else that of the first line. */
  range(): BatchRange | undefined;
};

/** Starts the check of an object. */
export function createObjectCheck({ batchId: named, listed }: ObjectExpectation): ObjectCheck {
  let batchId = named;
  let range: BatchRange | undefined = listed?.object;
  let project = listed?.manifest.project ?? undefined;
  let last = -1;
  return {
    add: (facts) => {
      range ??= facts;
      if (!facts.isArchived) project ??= facts.project;
      batchId ??= facts.batchId;
      const problems = [
        facts.batchId === batchId ? '' : `it is of ${facts.batchId}, not of ${batchId}`,
        isSameRange(facts, range) ? '' : `its batch has other leaves than ${rangeText(range)}`,
        project === undefined || facts.project === project
          ? ''
          : `it is of ${facts.project}, not of ${project}`,
        orderProblem(facts.logIndex, last),
        filterProblem(facts, listed?.manifest.filterSchema ?? null),
      ];
      last = Math.max(last, facts.logIndex);
      return problems.filter((problem) => problem !== '');
    },
    end: (lines) => {
      if (listed === undefined) return [];
      const { submissions } = listed.object;
      return lines === submissions
        ? []
        : [`it has ${count(lines, 'line')}, not ${submissions} as its manifest says`];
    },
    range: () => range,
  };
}

/** `leaves 0 to 99 of live.log.example`. */
export function rangeText({ log, firstIndex, treeSize }: BatchRange): string {
  return `leaves ${firstIndex} to ${treeSize - 1} of ${log}`;
}

/** `1 line`, `2 lines`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

function isSameRange(a: BatchRange, b: BatchRange): boolean {
  return a.log === b.log && a.firstIndex === b.firstIndex && a.treeSize === b.treeSize;
}

function orderProblem(logIndex: number, last: number): string {
  if (logIndex > last) return '';
  return logIndex === last ? `leaf ${logIndex} occurs twice` : `leaf ${logIndex} is after leaf ${last}`;
}

function filterProblem({ schema }: LineFacts, filter: string | null): string {
  if (filter === null || schema === filter) return '';
  return 'its metadata schema is not the one that the export is limited to';
}
