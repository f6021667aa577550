import { useQuery } from '@connectrpc/connect-query';
import { useState } from 'preact/hooks';
import { SessionService } from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { ProviderButton } from './provider-sign-in.js';
import { Button } from './ui/button.js';
import { Field } from './ui/field.js';
import { ErrorState, Loading } from './ui/states.js';
import { useSignIn } from './use-sign-in.js';

/** The sign-in page: at the identity provider, with the admin token, or with the link whose secret is in the fragment. */
export function SignIn() {
  const [link] = useState(() => location.hash.slice(1));
  const signIn = useSignIn();
  return (
    <main class="alone">
      <section class="card sign-in">
        <h1>Sign in</h1>
        {link === '' ? <Ways signIn={signIn} /> : <LinkForm link={link} signIn={signIn} />}
        {signIn.error === null ? null : <ErrorState error={signIn.error} />}
      </section>
    </main>
  );
}

/** The page of an invitation: its secret is in the fragment of the address, and is used by the sign-in that a press begins. */
export function AcceptInvitation() {
  const [invitation] = useState(() => location.hash.slice(1));
  const ways = useQuery(SessionService.method.getSignInWays);
  return (
    <main class="alone">
      <section class="card sign-in">
        <h1>You are invited</h1>
        <p>Sign in to accept the invitation. It works once.</p>
        {ways.isPending ? <Loading what="the ways to sign in" /> : null}
        {ways.error === null ? null : <ErrorState error={ways.error} onRetry={ways.refetch} />}
        {ways.data === undefined ? null : (
          <ProviderButton provider={ways.data.provider} invitation={invitation} />
        )}
      </section>
    </main>
  );
}

function Ways({ signIn }: FormProps) {
  const ways = useQuery(SessionService.method.getSignInWays);
  if (ways.isPending) return <Loading what="the ways to sign in" />;
  const { provider = '', adminToken = true } = ways.data ?? {};
  if (provider === '') return <TokenForm signIn={signIn} />;
  return (
    <>
      <ProviderButton provider={provider} />
      {adminToken ? (
        <details>
          <summary>Break-glass: admin token</summary>
          <TokenForm signIn={signIn} isSecond />
        </details>
      ) : null}
    </>
  );
}

type FormProps = { signIn: ReturnType<typeof useSignIn> };

function TokenForm({ signIn, isSecond = false }: FormProps & { isSecond?: boolean }) {
  const [token, setToken] = useState('');
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    signIn.mutate({ case: 'adminToken', value: token });
  };
  return (
    <form onSubmit={submit}>
      <p>With the operator’s admin token, or open the sign-in link that the operator has sent you.</p>
      <Field
        label="Admin token"
        type="password"
        value={token}
        onChange={setToken}
        required
        autocomplete="off"
      />
      <Button type="submit" isPrimary={!isSecond} disabled={token === '' || signIn.isPending}>
        {signIn.isPending ? 'Signing in…' : 'Sign in'}
      </Button>
      <p class="hint">
        The token of <code>npm start</code> is <code>admin_token</code> in <code>.data/credentials.json</code>
        .
      </p>
    </form>
  );
}

/** A link is used up by a press, not by opening it: programs that look at links in messages do not use it up. */
function LinkForm({ link, signIn }: FormProps & { link: string }) {
  return (
    <>
      <p>This link signs you in to one project. It works once.</p>
      <Button
        isPrimary
        disabled={signIn.isPending}
        onClick={() => signIn.mutate({ case: 'link', value: link })}
      >
        {signIn.isPending ? 'Signing in…' : 'Sign in to the project'}
      </Button>
    </>
  );
}
