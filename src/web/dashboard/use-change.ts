import type { DescMessage, DescMethodUnary } from '@bufbuild/protobuf';
import { useMutation } from '@connectrpc/connect-query';
import { useQueryClient } from '@tanstack/react-query';

/** A change of something; once it is made, what shows is read anew. */
export function useChange<I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>) {
  const queries = useQueryClient();
  return useMutation(method, { onSuccess: () => queries.invalidateQueries() });
}
