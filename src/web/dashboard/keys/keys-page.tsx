import { useInfiniteQuery } from '@connectrpc/connect-query';
import { useState } from 'preact/hooks';
import { type ApiKey, ApiKeyService } from '../../../../gen/attestation/admin/v1/api_keys_pb.js';
import { useScope } from '../scope.js';
import { Button } from '../ui/button.js';
import { DataTable } from '../ui/data-table.js';
import { PageHead } from '../ui/page-head.js';
import { PageList } from '../ui/page-list.js';
import { Empty } from '../ui/states.js';
import { CreateKey } from './create-key.js';
import { keyColumns } from './key-columns.js';
import { NewSecret } from './new-secret.js';
import { TrustRules } from './trust-rules.js';

/** The API keys of the project, of both environments. */
export function KeysPage() {
  const { projectId } = useScope().scope;
  const [isCreating, setCreating] = useState(false);
  const [made, setMade] = useState<ApiKey>();
  const pages = useInfiniteQuery(
    ApiKeyService.method.listApiKeys,
    { projectId, limit: 100, cursor: '' },
    { pageParamKey: 'cursor', getNextPageParam: ({ nextCursor }) => nextCursor || undefined },
  );
  return (
    <>
      <PageHead
        title="API keys"
        hint="Programs submit and read with an API key. Each belongs to one environment."
      >
        <Button isPrimary calls={ApiKeyService.method.createApiKey} onClick={() => setCreating(true)}>
          Create key
        </Button>
      </PageHead>
      <PageList
        what="API keys"
        pages={pages}
        empty={<Empty title="No API keys yet">Create the first one, and submit with it.</Empty>}
      >
        {(keys) => <Keys keys={keys} onMade={setMade} />}
      </PageList>
      <TrustRules />
      {isCreating ? <CreateKey onClose={() => setCreating(false)} onMade={setMade} /> : null}
      {made === undefined ? null : <NewSecret apiKey={made} onClose={() => setMade(undefined)} />}
    </>
  );
}

function Keys({ keys, onMade }: { keys: ApiKey[]; onMade: (key: ApiKey) => void }) {
  const [columns] = useState(() => keyColumns(onMade));
  return <DataTable label="API keys" columns={columns} data={keys} idOf={({ id }) => id} />;
}
