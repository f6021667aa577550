import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Session } from '../../../gen/attestation/admin/v1/sessions_pb.js';
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
