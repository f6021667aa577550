import { TransportProvider, useQuery } from '@connectrpc/connect-query';
import { useMemo } from 'preact/hooks';
import { Route, Switch } from 'wouter';
import { SessionService } from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { isSignedOut } from './errors.js';
import { ProviderCallback } from './provider-sign-in.js';
import { Shell } from './shell.js';
import { AcceptInvitation, SignIn } from './sign-in.js';
import { createScopedTransport } from './transport.js';
import { ErrorState, Loading } from './ui/states.js';

const UNSCOPED = { environment: 'live', projectId: '' } as const;

/** The page: sign-in, or the shell for those who are signed in. */
export function App() {
  const transport = useMemo(() => createScopedTransport(UNSCOPED), []);
  return (
    <TransportProvider transport={transport}>
      <Switch>
        <Route path="/sign-in" component={SignIn} />
        <Route path="/sign-in/callback" component={ProviderCallback} />
        <Route path="/invitation" component={AcceptInvitation} />
        <Route component={SignedIn} />
      </Switch>
    </TransportProvider>
  );
}

function SignedIn() {
  const session = useQuery(SessionService.method.getSession, {}, { retry: false });
  if (session.data !== undefined) return <Shell session={session.data} />;
  if (isSignedOut(session.error)) return <SignIn />;
  return (
    <main class="alone">
      {session.isPending ? (
        <Loading what="the dashboard" />
      ) : (
        <ErrorState error={session.error} onRetry={session.refetch} />
      )}
    </main>
  );
}
