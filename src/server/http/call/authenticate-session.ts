import {
  Access,
  type MethodRules,
  Role,
  RoleSchema,
  SessionAccess,
} from '../../../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import type { Call } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Principal, Session } from '../../core/principal.js';

/** Looks up the sessions of the dashboard. */
export type Sessions = {
  /** The unchecked secret in the call's cookie; undefined without one. */
  readCookie: (call: Call) => string | undefined;
  /** Throws `auth.insufficient_scope` for a call that does not come from the dashboard's own page. */
  assertSameOrigin: (call: Call) => void;
  /** Returns undefined if the session has ended or never was. A person's is for the project that the call names. */
  find: (cookie: string, call: Call) => Promise<Session | undefined>;
  /** The principal that a session acts as, by the call's headers. Throws `project.not_found` and `request.invalid`. */
  principalOf: (session: Session, call: Call) => Promise<Principal>;
  /** The project that an API key belongs to; undefined if there is no such key. */
  projectOfKey: (apiKeyId: string) => Promise<string | undefined>;
  /** The project that a trust rule belongs to; undefined if there is no such rule. */
  projectOfRule: (trustRuleId: string) => Promise<string | undefined>;
};

/** Authenticates the caller by a session, if the method's `session` allows this one. */
export async function authenticateSession(
  sessions: Sessions,
  call: Call,
  cookie: string | undefined,
): Promise<void> {
  const { rules } = call;
  sessions.assertSameOrigin(call);
  const session = cookie === undefined ? undefined : await sessions.find(cookie, call);
  if (session === undefined) {
    throw new ApiError(ErrorCode.AUTH_INVALID_KEY, 'you are not signed in, or the session has ended');
  }
  assertMayCall(session, rules);
  call.session = session;
  const { projectId } = session;
  if (rules.access === Access.UNSPECIFIED || (projectId !== undefined && projectId !== ''))
    call.principal = await sessions.principalOf(session, call);
}

/** Throws `auth.insufficient_scope` for an RPC that this session may not call, `project.not_found` if it is for no project. */
function assertMayCall({ role, projectId }: Session, { session, role: least }: MethodRules): void {
  if (session === SessionAccess.ANY || (session !== SessionAccess.UNSPECIFIED && role === Role.OPERATOR))
    return;
  if (session !== SessionAccess.PROJECT) {
    const message = "this is not allowed in the dashboard's session: it wants the credential of the RPC";
    throw new ApiError(ErrorCode.AUTH_INSUFFICIENT_SCOPE, message, { required: 'credential' });
  }
  if (projectId === '') {
    const message = 'Attest-Project names no project that you have a role in';
    throw new ApiError(ErrorCode.PROJECT_NOT_FOUND, message);
  }
  if (role >= least) return;
  const [wanted, own] = [enumName(RoleSchema, least), enumName(RoleSchema, role)];
  const message = `this wants the role ${wanted} in the project, and yours is ${own}: ask an administrator of the project`;
  throw new ApiError(ErrorCode.AUTH_INSUFFICIENT_SCOPE, message, { required: `role:${wanted}` });
}
