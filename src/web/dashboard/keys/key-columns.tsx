import {
  type ApiKey,
  ApiKeyService,
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
    { header: 'Name', cell: (row) => <KeyName apiKey={row} /> },
    {
      header: 'Environment',
      cell: (row) => enumName(EnvironmentSchema, row.environment),
    },
    { header: 'Status', cell: (row) => <KeyStatus apiKey={row} /> },
    { header: 'Scopes', cell: (row) => <Scopes scopes={row.scopes} /> },
    { header: 'Last use', cell: (row) => <Time at={row.lastUsedAt} none="never" /> },
    {
      header: 'Expires',
      cell: (row) => <Time at={row.expiresAt} none="never" />,
    },
    {
      header: 'Actions',
      calls: [ApiKeyService.method.rotateApiKey, ApiKeyService.method.revokeApiKey],
      cell: (row) => <KeyActions apiKey={row} onMade={onMade} />,
    },
  ];
}

function KeyName({ apiKey: { name, prefix, last4, createdBy } }: { apiKey: ApiKey }) {
  return (
    <div>
      <strong>{safe(name)}</strong>
      <code class="sub">
        {prefix}…{last4}
      </code>
      {createdBy === undefined ? null : <span class="sub">made by {safe(createdBy.name)}</span>}
    </div>
  );
}

function KeyStatus({ apiKey: { status } }: { apiKey: ApiKey }) {
  return <Status tone={TONES[status] ?? 'plain'}>{enumName(ApiKeyStatusSchema, status)}</Status>;
}

function Scopes({ scopes }: { scopes: string[] }) {
  return <span title={scopes.join(', ')}>{scopes.length === 1 ? scopes[0] : `${scopes.length} scopes`}</span>;
}
