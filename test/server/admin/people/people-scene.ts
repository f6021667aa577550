/** What tests of people have in common: a service with a login provider, and people with roles in projects. */
import type { JsonObject } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import { PersonService } from '../../../../gen/attestation/admin/v1/people_pb.js';
import type { Role } from '../../../../gen/attestation/options/v1/options_pb.js';
import { startApp } from '../../../support/app.js';
import { adminOf } from '../../../support/calling/admin.js';
import type { Browser } from '../../../support/calling/sessions.js';
import { newKey } from '../../../support/calling/test-keys.js';
import { signInAs, startLoginProvider } from '../../../support/identities/login-provider.js';

/** Starts a service and a login provider until the test ends. */
export async function setPeopleScene(t: Test) {
  const provider = await startLoginProvider(t);
  const app = await startApp(t, {
    isWithoutWorker: true,
    env: { ...provider.env, OIDC_OPERATORS: 'groups=platform', TRUSTED_PROXIES: '127.0.0.0/8,::1' },
  });
  provider.register(app);
  const admin = adminOf(app);

  const newProject = async () => (await newKey(app)).projectId;

  /** An account at the provider, with further claims. @returns its name */
  function account(name: string, more: Record<string, unknown> = {}): string {
    provider.accounts.set(name, { name, email: `${name}@example.com`, email_verified: true, ...more });
    return name;
  }

  /** Invites somebody. @returns the secret of the invitation, and it */
  async function invite(projectId: string, role: Role, email = '') {
    const made = await admin.ask(PersonService.method.createInvitation, { projectId, role, email });
    const secret = new URL(String(made.url)).hash.slice(1);
    app.recorder.secrets.add(secret);
    return { made, id: String(made.id), secret };
  }

  /** Somebody new with a role in the project, signed in. */
  async function personOf(name: string, projectId: string, role: Role): Promise<Browser & { id: string }> {
    const { browser, outcome } = await signInAs(app, account(name), (await invite(projectId, role)).secret);
    if (outcome.code !== 'ok') throw new Error(`${name}: ${outcome.code} ${outcome.message}`);
    return Object.assign(browser, { id: (outcome.response.person as { id: string }).id });
  }

  return { app, admin, newProject, account, invite, personOf };
}

/** The entries of a list that the API answered. */
export const data = (answer: JsonObject) => (answer.data ?? []) as JsonObject[];
