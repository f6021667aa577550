import type { Role } from '../../../gen/attestation/options/v1/options_pb.js';
import type { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import type { Identity } from '../../protocol/identity.js';

/** A scope that every key has. It is not stored. */
export const UNIVERSAL_SCOPE = 'service:read';

/** Somebody who has signed in by the identity provider. */
export type SignedInPerson = {
  /** `per_` and a ULID. */
  id: string;
  name: string;
  /** Empty if the provider names none. */
  email: string;
};

/** A session of the dashboard, and what it may do in the call. */
export type Session = {
  id: string;
  /** The project that it is bound to, or that a person's call is for, empty if it is for none; undefined if it is an operator's. */
  projectId: string | undefined;
  /** In that project; `OPERATOR` if it is an operator's, `UNSPECIFIED` without one. */
  role: Role;
  /** Whose it is; undefined if the admin token or a link started it. */
  person?: SignedInPerson | undefined;
};

/** One fixed window of a rate bucket: `limit` calls per `windowSeconds`. */
type RateWindow = { windowSeconds: number; limit: number };

/** The caller of one environment of one project: an API key or a session, with its scopes and limits. Contains no secret. */
export type Principal = {
  /** Whose calls count together: an API key, a session, or the trust rule by which keys are exchanged for tokens. */
  id: string;
  projectId: string;
  environment: Environment.LIVE | Environment.TEST;
  /** Without `UNIVERSAL_SCOPE`. */
  scopes: readonly string[];
  /** Windows of the submissions bucket, shortest first: second, hour, UTC day. */
  submissionWindows: readonly RateWindow[];
  /** The window of the reads bucket. */
  readWindow: RateWindow;
  /** The same windows over all API keys of the project; undefined in a session. */
  ceiling?: Ceiling;
  /** Who holds the key, if it was exchanged for a token. */
  identity?: Identity | undefined;
  /** The id of a key that was exchanged for a token, and what its idempotency keys begin with, one for each identity. */
  exchanged?: { keyId: string; idempotencyPrefix: string };
};

/** The id of the API key or session itself. */
export function credentialId({ id, exchanged }: Principal): string {
  return exchanged?.keyId ?? id;
}

/** An idempotency key as it is claimed. With exchanged keys it is valid for one identity, in all its keys. */
export function claimedKey(principal: Principal | undefined, key: string): string {
  return `${principal?.exchanged?.idempotencyPrefix ?? ''}${key}`;
}

/** The limits that a project's API keys share. */
export type Ceiling = { submissionWindows: readonly RateWindow[]; readWindow: RateWindow };
