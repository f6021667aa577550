import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef } from 'preact/hooks';
import { Link } from 'wouter';
import type { Submission } from '../../../../gen/attestation/v1/attestations_pb.js';
import { safe } from '../ui/safe.js';
import { Time } from '../ui/time.js';
import { SubmissionState } from './submission-state.js';
import type { SubmissionList } from './use-submissions.js';

/** As the style sheet has it. */
const ROW = 64;
const AHEAD = 30;

/** The rows that are in view, of as many as there are. */
export function SubmissionRows({ rows, hasNextPage, fetchNextPage }: SubmissionList) {
  const box = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    getItemKey: (index) => rows[index]?.id ?? index,
    overscan: 10,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasNextPage && last > rows.length - AHEAD) void fetchNextPage();
  }, [hasNextPage, last, rows.length, fetchNextPage]);
  return (
    <>
      <div class="rows" ref={box} role="feed" aria-label="Submissions" aria-busy={false}>
        <div class="space" style={{ height: virtual.getTotalSize() }}>
          {items.map(({ key, index, start }) => {
            const row = rows[index];
            return row === undefined ? null : <Row key={key} row={row} start={start} place={index + 1} />;
          })}
        </div>
      </div>
      <p class="hint" role="status">
        {rows.length.toLocaleString()}
        {hasNextPage ? ' or more' : ''} submissions
      </p>
    </>
  );
}

function Row({ row, start, place }: { row: Submission; start: number; place: number }) {
  return (
    <article
      aria-posinset={place}
      aria-setsize={-1}
      aria-label={row.id}
      style={{ transform: `translateY(${start}px)` }}
    >
      <Link href={`/submissions/${row.id}`} class="item">
        <code title={row.id}>{row.id}</code>
        <span>
          <SubmissionState submission={row} />
        </span>
        <span>{summaryOf(row)}</span>
        <Time at={row.submittedAt} />
      </Link>
    </article>
  );
}

/** The schema, and what the metadata says in its first text. */
function summaryOf({ metadata, artifact }: Submission): string {
  if (metadata === undefined) return `sha256:${artifact?.sha256.slice(0, 16) ?? ''}…`;
  const { schema, ...members } = metadata;
  const text = Object.values(members).find((value) => typeof value === 'string') ?? '';
  return safe(`${String(schema)} ${String(text)}`).slice(0, 200);
}
