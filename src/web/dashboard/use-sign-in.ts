import { createClient } from '@connectrpc/connect';
import { useTransport } from '@connectrpc/connect-query';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { navigate } from 'wouter/use-browser-location';
import { SessionService } from '../../../gen/attestation/admin/v1/sessions_pb.js';

type Credential = { case: 'adminToken' | 'link' | 'callback'; value: string };

/** Starts a session, and goes to the first page. */
export function useSignIn() {
  const client = createClient(SessionService, useTransport());
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (credential: Credential) => client.signIn({ credential }),
    onSuccess: () => {
      void queries.resetQueries();
      navigate('/dashboard', { replace: true });
    },
  });
}
