import { createClient } from '@connectrpc/connect';
import { useTransport } from '@connectrpc/connect-query';
import { useMutation } from '@tanstack/react-query';
import { useEffect, useState } from 'preact/hooks';
import { SessionService } from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { Button } from './ui/button.js';
import { safe } from './ui/safe.js';
import { ErrorState, Loading } from './ui/states.js';
import { useSignIn } from './use-sign-in.js';

/** Where the invitation is until its sign-in completes, so that it can be tried again. */
const KEPT = 'invitation';

/** Goes to the identity provider, with the secret of an invitation if there is one. */
function useStart() {
  const client = createClient(SessionService, useTransport());
  return useMutation({
    mutationFn: async (invitation: string) => {
      const { url } = await client.startSignIn({ invitation });
      if (invitation === '') sessionStorage.removeItem(KEPT);
      else sessionStorage.setItem(KEPT, invitation);
      location.assign(url);
    },
  });
}

/** The button that signs in at the identity provider. */
export function ProviderButton({ provider, invitation = '' }: { provider: string; invitation?: string }) {
  const start = useStart();
  return (
    <>
      <Button isPrimary disabled={start.isPending} onClick={() => start.mutate(invitation)}>
        Sign in with {safe(provider)}
      </Button>
      {start.error === null ? null : <ErrorState error={start.error} />}
    </>
  );
}

/** Where the identity provider sends the browser back to. Its query works once, and leaves the address at once. */
export function ProviderCallback() {
  const [query] = useState(() => location.search);
  const signIn = useSignIn();
  const start = useStart();
  const { mutate } = signIn;
  useEffect(() => {
    history.replaceState(null, '', location.pathname);
    mutate({ case: 'callback', value: query || '?' }, { onSuccess: () => sessionStorage.removeItem(KEPT) });
  }, [query, mutate]);
  const kept = sessionStorage.getItem(KEPT) ?? '';
  return (
    <main class="alone">
      <section class="card sign-in">
        <h1>Sign in</h1>
        {signIn.error === null ? (
          <Loading what="your session" />
        ) : (
          <>
            <ErrorState error={start.error ?? signIn.error} />
            <p>You are not signed in. Try again, or sign in at the identity provider as somebody else.</p>
            <Button isPrimary disabled={start.isPending} onClick={() => start.mutate(kept)}>
              Try again
            </Button>
            {kept === '' ? null : (
              <Button disabled={start.isPending} onClick={() => start.mutate('')}>
                Sign in without the invitation
              </Button>
            )}
          </>
        )}
      </section>
    </main>
  );
}
