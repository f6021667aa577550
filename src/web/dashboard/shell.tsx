import { createClient } from '@connectrpc/connect';
import { TransportProvider, useTransport } from '@connectrpc/connect-query';
import { useQueryClient } from '@tanstack/react-query';
import type { RefObject } from 'preact';
import { lazy, Suspense } from 'preact/compat';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Link, Redirect, Route, Switch, useLocation } from 'wouter';
import { type Session, SessionService } from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { Role, RoleSchema } from '../../../gen/attestation/options/v1/options_pb.js';
import { enumName } from '../../protocol/enum-names.js';
import { roleIn, ScopeProvider } from './scope.js';
import { ScopePicker } from './scope-picker.js';
import { SubmissionsPage } from './submissions/submissions-page.js';
import { createScopedTransport, type Scope } from './transport.js';
import { Button } from './ui/button.js';
import { safe } from './ui/safe.js';
import { Empty, Loading } from './ui/states.js';

const KeysPage = lazy(async () => ({ default: (await import('./keys/keys-page.js')).KeysPage }));
const SubmissionPage = lazy(async () => ({
  default: (await import('./submissions/submission-page.js')).SubmissionPage,
}));
const BatchesPage = lazy(async () => ({ default: (await import('./batches/batches-page.js')).BatchesPage }));
const WebhooksPage = lazy(async () => ({
  default: (await import('./webhooks/webhooks-page.js')).WebhooksPage,
}));
const WebhookPage = lazy(async () => ({ default: (await import('./webhooks/webhook-page.js')).WebhookPage }));
const ExportsPage = lazy(async () => ({ default: (await import('./exports/exports-page.js')).ExportsPage }));
const UsagePage = lazy(async () => ({ default: (await import('./usage/usage-page.js')).UsagePage }));
const ProjectPage = lazy(async () => ({ default: (await import('./project/project-page.js')).ProjectPage }));
const PeoplePage = lazy(async () => ({ default: (await import('./people/people-page.js')).PeoplePage }));
const AuditPage = lazy(async () => ({ default: (await import('./audit/audit-page.js')).AuditPage }));

const PAGES = [
  ['/submissions', 'Submissions'],
  ['/keys', 'API keys'],
  ['/people', 'People'],
  ['/batches', 'Batches and log'],
  ['/webhooks', 'Webhooks'],
  ['/exports', 'Exports'],
  ['/usage', 'Usage and limits'],
  ['/audit', 'Audit log'],
  ['/project', 'Project'],
] as const;

const KEPT = 'scope';

function readKept({ projectId, memberships }: Session): Scope {
  const [environment, kept = ''] = (sessionStorage.getItem(KEPT) ?? '').split(' ');
  const [first] = memberships;
  const own =
    first === undefined || memberships.some((one) => one.projectId === kept) ? kept : first.projectId;
  return { environment: environment === 'test' ? 'test' : 'live', projectId: projectId || own };
}

/** Navigation around the pages, for one environment of one project. */
export function Shell({ session }: { session: Session }) {
  const [scope, setScope] = useState(() => readKept(session));
  const transport = useMemo(() => createScopedTransport(scope), [scope]);
  const scoped = useMemo(() => ({ session, scope }), [session, scope]);
  const choose = (next: Scope) => {
    sessionStorage.setItem(KEPT, `${next.environment} ${next.projectId}`);
    setScope(next);
  };
  return (
    <div class="shell">
      <a class="skip" href="#content">
        Skip to content
      </a>
      <header class="top">
        <Link href="/submissions" class="brand">
          <span aria-hidden="true" class="mark" />
          Attestation service
        </Link>
        <ScopePicker session={session} scope={scope} onChange={choose} />
        <Whose session={session} role={roleIn(session, scope.projectId)} />
        <SignOut />
      </header>
      <Navigation />
      <main id="content" tabIndex={-1} ref={useFocusOnNavigation()}>
        <TransportProvider transport={transport}>
          <ScopeProvider value={scoped}>
            {scope.projectId === '' ? (
              <NoProject />
            ) : (
              <Pages key={`${scope.environment} ${scope.projectId}`} />
            )}
          </ScopeProvider>
        </TransportProvider>
      </main>
    </div>
  );
}

/** The place that gets the focus with each new page, so that keyboards and screen readers go on from there. */
function useFocusOnNavigation(): RefObject<HTMLElement | null> {
  const [location] = useLocation();
  const place = useRef<HTMLElement>(null);
  const shown = useRef(location);
  useEffect(() => {
    if (shown.current !== location) place.current?.focus({ preventScroll: true });
    shown.current = location;
  }, [location]);
  return place;
}

function Navigation() {
  const [location] = useLocation();
  const nav = useRef<HTMLElement>(null);
  const current = PAGES.findIndex(([path]) => location.startsWith(path));
  useEffect(() => {
    // On narrow screens the pages scroll sideways. `scrollIntoView` would have Tab start behind the link, not at the top.
    const link = nav.current?.children[current];
    if (nav.current && link) nav.current.scrollLeft += middleOf(link) - middleOf(nav.current);
  }, [current]);
  return (
    <nav class="side" aria-label="Pages" ref={nav}>
      {PAGES.map(([path, name]) => (
        <Link key={path} href={path} aria-current={location.startsWith(path) ? 'page' : undefined}>
          {name}
        </Link>
      ))}
    </nav>
  );
}

function middleOf(element: Element): number {
  const { left, width } = element.getBoundingClientRect();
  return left + width / 2;
}

function Pages() {
  return (
    <Suspense fallback={<Loading what="the page" />}>
      <Switch>
        <Route path="/submissions" component={SubmissionsPage} />
        <Route path="/submissions/:id">{({ id }) => <SubmissionPage key={id} id={id} />}</Route>
        <Route path="/keys" component={KeysPage} />
        <Route path="/people" component={PeoplePage} />
        <Route path="/batches" component={BatchesPage} />
        <Route path="/webhooks" component={WebhooksPage} />
        <Route path="/webhooks/:id">{({ id }) => <WebhookPage key={id} id={id} />}</Route>
        <Route path="/exports" component={ExportsPage} />
        <Route path="/usage" component={UsagePage} />
        <Route path="/audit" component={AuditPage} />
        <Route path="/project" component={ProjectPage} />
        <Route>
          <Redirect to="/submissions" replace />
        </Route>
      </Switch>
    </Suspense>
  );
}

function NoProject() {
  return (
    <Empty title="There is no project yet">
      Make one with <code>attest projects create NAME</code>.
    </Empty>
  );
}

/** Who is signed in, and as what. */
function Whose({ session: { person }, role }: { session: Session; role: Role }) {
  if (person === undefined) return null;
  return (
    <span class="whose" title={safe(person.email)}>
      <strong>{safe(person.name)}</strong>
      <span class="sub">{role === Role.UNSPECIFIED ? 'no role' : enumName(RoleSchema, role)}</span>
    </span>
  );
}

function SignOut() {
  const client = createClient(SessionService, useTransport());
  const queries = useQueryClient();
  const signOut = async () => {
    const answer = await client.signOut({}).catch(() => undefined);
    sessionStorage.clear();
    queries.clear();
    location.assign(answer?.providerUrl || '/dashboard/sign-in');
  };
  return <Button onClick={() => void signOut()}>Sign out</Button>;
}
