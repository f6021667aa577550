import { type DescMethodUnary, getOption, type Message } from '@bufbuild/protobuf';
import {
  Access,
  type MethodRules,
  Resource,
  Role,
  refers_to,
  SessionAccess,
} from '../../../../gen/attestation/options/v1/options_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { Call } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import type { Sessions } from './authenticate-session.js';

/** A text field of a request that names something of a project; `oneof`: of which one it is a member. */
type Reference = { localName: string; resource: Resource; oneof: string | undefined };
type Members = Message & Record<string, unknown>;
type Oneof = { case: string | undefined; value?: unknown };

const known = new WeakMap<DescMethodUnary, readonly Reference[]>();

/**
 * Throws if sessions of a project may call an RPC that says no role, or an admin RPC whose request has no field that names
 * something of a project.
 */
export function assertScopable(method: DescMethodUnary, { access, session, role }: MethodRules): void {
  if (session !== SessionAccess.PROJECT) return;
  const name = `${method.parent.typeName}.${method.name}`;
  if (role === Role.UNSPECIFIED) throw new Error(`${name} says no role`);
  if (access === Access.ADMIN && referencesOf(method).length === 0)
    throw new Error(`${name} names nothing of a project`);
}

/** Sets the project of a request to the session's, if it has such a field and names no resource. */
export function fillOwnProject(call: Call, message: Message): void {
  const projectId = projectScope(call);
  if (projectId === undefined) return;
  const references = referencesOf(call.method);
  const own = references.find(({ resource }) => resource === Resource.PROJECT);
  if (own === undefined || references.some((reference) => read(message, reference) !== '')) return;
  const { localName, oneof } = own;
  const members = message as Members;
  if (oneof === undefined) members[localName] = projectId;
  else if ((members[oneof] as Oneof).case === undefined)
    members[oneof] = { case: localName, value: projectId };
}

/**
 * Throws `project.not_found`, `api_key.not_found` or `trust_rule.not_found` if a request names a resource outside the
 * session's project.
 */
export async function assertOwn(
  sessions: Pick<Sessions, 'projectOfKey' | 'projectOfRule'> | undefined,
  call: Call,
  message: Message,
): Promise<void> {
  const projectId = projectScope(call);
  if (projectId === undefined) return;
  for (const reference of referencesOf(call.method)) {
    const id = read(message, reference);
    if (id === '') continue;
    if (reference.resource === Resource.PROJECT && id !== projectId) {
      throw new ApiError(ErrorCode.PROJECT_NOT_FOUND, 'there is no project with this id');
    }
    if (reference.resource === Resource.API_KEY && (await sessions?.projectOfKey(id)) !== projectId) {
      throw new ApiError(ErrorCode.API_KEY_NOT_FOUND, 'there is no API key with this id');
    }
    if (reference.resource === Resource.TRUST_RULE && (await sessions?.projectOfRule(id)) !== projectId) {
      throw new ApiError(ErrorCode.TRUST_RULE_NOT_FOUND, 'there is no trust rule with this id');
    }
  }
}

/** The project that an admin RPC is limited to. Other RPCs look up named resources among the principal's own. */
function projectScope({ session, rules }: Call): string | undefined {
  return rules.access === Access.ADMIN ? session?.projectId : undefined;
}

function read(message: Message, { localName, oneof }: Reference): string {
  const members = message as Members;
  if (oneof === undefined) return String(members[localName] ?? '');
  const set = members[oneof] as Oneof;
  return set.case === localName ? String(set.value) : '';
}

function referencesOf(method: DescMethodUnary): readonly Reference[] {
  const cached = known.get(method);
  if (cached !== undefined) return cached;
  const found = method.input.fields
    .map((field) => ({
      localName: field.localName,
      resource: getOption(field, refers_to),
      oneof: field.oneof?.localName,
    }))
    .filter(({ resource }) => resource !== Resource.UNSPECIFIED);
  known.set(method, found);
  return found;
}
