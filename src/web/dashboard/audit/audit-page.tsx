import { type Timestamp, timestampFromDate } from '@bufbuild/protobuf/wkt';
import { useInfiniteQuery } from '@connectrpc/connect-query';
import { useState } from 'preact/hooks';
import {
  type AuditAction,
  AuditActionSchema,
  AuditActorKindSchema,
  type AuditEntry,
  AuditService,
} from '../../../../gen/attestation/admin/v1/audit_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { useScope } from '../scope.js';
import { Choice } from '../ui/choice.js';
import { type Column, DataTable } from '../ui/data-table.js';
import { Field } from '../ui/field.js';
import { PageHead } from '../ui/page-head.js';
import { PageList } from '../ui/page-list.js';
import { safe, safeJson } from '../ui/safe.js';
import { Empty } from '../ui/states.js';
import { Time } from '../ui/time.js';

const ACTIONS = AuditActionSchema.values.map(
  ({ number }) =>
    [String(number), number === 0 ? 'Every action' : enumName(AuditActionSchema, number)] as const,
);

const COLUMNS: Column<AuditEntry>[] = [
  { header: 'When', cell: (row) => <Time at={row.at} /> },
  {
    header: 'What',
    cell: (row) => <strong>{enumName(AuditActionSchema, row.action)}</strong>,
  },
  { header: 'To', cell: (row) => <code>{safe(row.resourceId)}</code> },
  { header: 'By', cell: (row) => <Actor entry={row} /> },
  { header: 'Detail', cell: (row) => <Detail entry={row} /> },
];

type Filters = { action: string; resourceId: string; from: string; until: string };

/** Who changed what, and when; entries are never changed or deleted. */
export function AuditPage() {
  const { projectId } = useScope().scope;
  const [filters, setFilters] = useState<Filters>({ action: '0', resourceId: '', from: '', until: '' });
  const { action, resourceId, from, until } = filters;
  const pages = useInfiniteQuery(
    AuditService.method.listAuditEntries,
    {
      projectId,
      action: Number(action) as AuditAction,
      resourceId: resourceId.trim(),
      ...timeOf('after', from),
      ...timeOf('before', until),
      limit: 50,
      cursor: '',
    },
    { pageParamKey: 'cursor', getNextPageParam: ({ nextCursor }) => nextCursor || undefined },
  );
  return (
    <>
      <PageHead title="Audit log" hint="Who changed what, and when. Entries are never changed." />
      <FilterBar filters={filters} onChange={setFilters} />
      <PageList
        what="the audit log"
        pages={pages}
        empty={<Empty title="No entry is like this">Widen the filters.</Empty>}
      >
        {(entries) => <DataTable label="Audit log" columns={COLUMNS} data={entries} idOf={({ id }) => id} />}
      </PageList>
    </>
  );
}

function timeOf(name: 'after' | 'before', local: string): Partial<Record<'after' | 'before', Timestamp>> {
  const date = new Date(local);
  return Number.isNaN(date.getTime()) ? {} : { [name]: timestampFromDate(date) };
}

function FilterBar({ filters, onChange }: { filters: Filters; onChange: (filters: Filters) => void }) {
  const set = (name: keyof Filters) => (value: string) => onChange({ ...filters, [name]: value });
  return (
    <search class="row end">
      <Choice label="Action" options={ACTIONS} value={filters.action} onChange={set('action')} />
      <div class="grow">
        <Field
          label="Id of a key, submission, webhook…"
          value={filters.resourceId}
          onChange={set('resourceId')}
          maxLength={64}
        />
      </div>
      <Field label="From" type="datetime-local" value={filters.from} onChange={set('from')} />
      <Field label="Until" type="datetime-local" value={filters.until} onChange={set('until')} />
    </search>
  );
}

function Actor({ entry: { actor, requestId } }: { entry: AuditEntry }) {
  return (
    <span title={requestId === '' ? undefined : `request ${requestId}`}>
      {actor?.person === undefined ? null : <strong>{safe(actor.person.name)} </strong>}
      {actor === undefined ? '' : enumName(AuditActorKindSchema, actor.kind)}
      <code class="sub">{safe(actor?.id ?? '')}</code>
    </span>
  );
}

function Detail({ entry: { detail } }: { entry: AuditEntry }) {
  if (detail === undefined || Object.keys(detail).length === 0) return <span>–</span>;
  return (
    <details>
      <summary>{safe(Object.keys(detail).join(', '))}</summary>
      <pre>{safeJson(detail)}</pre>
    </details>
  );
}
