import { createClient } from '@connectrpc/connect';
import { useTransport } from '@connectrpc/connect-query';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'preact/hooks';
import { navigate } from 'wouter/use-browser-location';
import { SessionService } from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { Button } from './ui/button.js';
import { Field } from './ui/field.js';
import { ErrorState } from './ui/states.js';

/** The sign-in page: with the admin token, or with the link whose secret is in the fragment of the address. */
export function SignIn() {
  const [link] = useState(() => location.hash.slice(1));
  const signIn = useSignIn();
  return (
    <main class="alone">
      <section class="card sign-in">
        <h1>Sign in</h1>
        {link === '' ? <TokenForm signIn={signIn} /> : <LinkForm link={link} signIn={signIn} />}
        {signIn.error === null ? null : <ErrorState error={signIn.error} />}
      </section>
    </main>
  );
}

type Credential = { case: 'adminToken' | 'link'; value: string };

function useSignIn() {
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

type FormProps = { signIn: ReturnType<typeof useSignIn> };

function TokenForm({ signIn }: FormProps) {
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
      <Button type="submit" isPrimary disabled={token === '' || signIn.isPending}>
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
