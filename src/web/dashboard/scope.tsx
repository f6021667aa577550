import { type DescMethod, getOption } from '@bufbuild/protobuf';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Session } from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { Role, rules, SessionAccess } from '../../../gen/attestation/options/v1/options_pb.js';
import type { Scope } from './transport.js';

/** The session, and what its calls are for. */
type Scoped = { session: Session; scope: Scope };

const ScopeContext = createContext<Scoped | undefined>(undefined);

/** Gives pages the session and scope. */
export const ScopeProvider = ScopeContext.Provider;

/** The session and scope. Throws outside of the shell. */
export function useScope(): Scoped {
  const scoped = useContext(ScopeContext);
  if (scoped === undefined) throw new Error('there is no scope outside of the shell');
  return scoped;
}

/** The role that a session has in a project: operators have theirs in each. */
export function roleIn({ memberships, role }: Session, projectId: string): Role {
  if (role === Role.OPERATOR) return role;
  return memberships.find((one) => one.projectId === projectId)?.role ?? role;
}

/** The role in the project that is chosen. */
function useRole(): Role {
  const { session, scope } = useScope();
  return roleIn(session, scope.projectId);
}

/** Says whether the session may call an RPC for the project that is chosen, by the options of the RPC. */
export function useMay(): (method: DescMethod) => boolean {
  const role = useRole();
  return (method) => {
    const { session, role: least } = getOption(method, rules);
    if (role === Role.OPERATOR) return session !== SessionAccess.UNSPECIFIED;
    return session === SessionAccess.PROJECT && role >= least;
  };
}
