import { Code, ConnectError } from '@connectrpc/connect';
import { QueryClient } from '@tanstack/react-query';

const STALE_MS = 5_000;
const RETRIES = 2;
const TRANSIENT: readonly Code[] = [Code.Unavailable, Code.DeadlineExceeded, Code.ResourceExhausted];

/** Creates the cache of answers. Reads are repeated twice if the service is away or busy; changes never are. */
export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: STALE_MS,
        retry: (failures, error) => failures < RETRIES && TRANSIENT.includes(ConnectError.from(error).code),
      },
    },
  });
}
