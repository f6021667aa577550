import {
  type ApiKey,
  ApiKeyStatus,
  ApiKeyStatusSchema,
} from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import { EnvironmentSchema } from '../../../../gen/attestation/v1/environment_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import type { Column } from '../ui/data-table.js';
import { safe } from '../ui/safe.js';
import { Status, type Tone } from '../ui/status.js';
import { Time } from '../ui/time.js';
import { KeyActions } from './key-actions.js';

const TONES: Partial<Record<ApiKeyStatus, Tone>> = {
  [ApiKeyStatus.ACTIVE]: 'good',
  [ApiKeyStatus.EXPIRED]: 'wait',
  [ApiKeyStatus.REVOKED]: 'bad',
};

/** The columns of the list of API keys. */
export function keyColumns(onMade: (key: ApiKey) => void): Column<ApiKey>[] {
  return [
    { id: 'name', header: 'Name', cell: ({ row }) => <KeyName apiKey={row.original} /> },
    {
      id: 'environment',
      header: 'Environment',
      cell: ({ row }) => enumName(EnvironmentSchema, row.original.environment),
    },
    { id: 'status', header: 'Status', cell: ({ row }) => <KeyStatus apiKey={row.original} /> },
    { id: 'scopes', header: 'Scopes', cell: ({ row }) => <Scopes scopes={row.original.scopes} /> },
    { id: 'used', header: 'Last use', cell: ({ row }) => <Time at={row.original.lastUsedAt} none="never" /> },
    {
      id: 'expires',
      header: 'Expires',
      cell: ({ row }) => <Time at={row.original.expiresAt} none="never" />,
    },
    {
      id: 'actions',
      header: 'Actions',
      cell: ({ row }) => <KeyActions apiKey={row.original} onMade={onMade} />,
    },
  ];
}

function KeyName({ apiKey: { name, prefix, last4 } }: { apiKey: ApiKey }) {
  return (
    <div>
      <strong>{safe(name)}</strong>
      <code className="sub">
        {prefix}…{last4}
      </code>
    </div>
  );
}

function KeyStatus({ apiKey: { status } }: { apiKey: ApiKey }) {
  return <Status tone={TONES[status] ?? 'plain'}>{enumName(ApiKeyStatusSchema, status)}</Status>;
}

function Scopes({ scopes }: { scopes: string[] }) {
  return <span title={scopes.join(', ')}>{scopes.length === 1 ? scopes[0] : `${scopes.length} scopes`}</span>;
}
