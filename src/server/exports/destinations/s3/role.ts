/** The customer's role, which the operator's credentials assume with the project's id as external id. */
import type { STSClient } from '@aws-sdk/client-sts';
import { ulid } from 'ulid';
import { DestinationError } from '../destination.js';
import type { Session } from './bucket.js';
import { clean, toDestinationError } from './error.js';
import type { NetworkLimits } from './network.js';

/** Renewal margin of a session: longer than the timeout of an answer. */
const RENEW_BEFORE_MS = 15 * 60_000;

/** Credentials as the SDK of S3 takes them. */
type Credentials = {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken: string;
  expiration: Date;
};

type RoleSettings = {
  roleArn: string;
  /** The external id. */
  projectId: string;
  exportId: string;
  /** The region of STS if the operator has set none. */
  region: string;
};

/** A role to assume. Its methods reject with `DestinationError`, or with the reason of the signal. */
export type Role = Session & {
  /** The credentials of the session that `ensure` got. */
  credentials: () => Promise<Credentials>;
  /** Checks that the role cannot be assumed without the external id, nor with that of another project. */
  checkTrust: (signal: AbortSignal) => Promise<void>;
  close: () => void;
};

type Sdk = typeof import('@aws-sdk/client-sts');

/** Opens a role. STS is called with what the SDK finds in the operator's environment. */
export function openRole(sdk: Sdk, settings: RoleSettings, limits: NetworkLimits): Role {
  const { roleArn, projectId, exportId } = settings;
  const operation = { action: 'sts:AssumeRole', resource: roleArn };
  let opened: Promise<STSClient> | undefined;
  let current: Credentials | undefined;
  const assume = async (externalId: string | undefined, abortSignal: AbortSignal): Promise<Credentials> => {
    opened ??= openClient(sdk, settings.region, limits);
    const command = new sdk.AssumeRoleCommand({
      RoleArn: roleArn,
      RoleSessionName: exportId,
      ...(externalId !== undefined && { ExternalId: externalId }),
    });
    const { Credentials } = await (await opened).send(command, { abortSignal });
    return readCredentials(Credentials);
  };
  const refuses = async (externalId: string | undefined, signal: AbortSignal): Promise<boolean> => {
    try {
      await assume(externalId, signal);
      return false;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Error && error.name === 'AccessDenied') return true;
      throw explainRefusal(error, settings) ?? toDestinationError(error, operation);
    }
  };
  return {
    ensure: async (signal) => {
      if (current !== undefined && current.expiration.getTime() - Date.now() > RENEW_BEFORE_MS) return;
      try {
        current = await assume(projectId, signal);
      } catch (error) {
        signal.throwIfAborted();
        throw explainRefusal(error, settings) ?? toDestinationError(error, operation);
      }
    },
    forget: () => {
      current = undefined;
    },
    credentials: async () => {
      if (current === undefined) throw new DestinationError('the role has not been assumed');
      // The SDK asks again for credentials that have ended: the session may have been renewed.
      return { ...current, expiration: new Date(0) };
    },
    checkTrust: async (signal) => {
      if ((await refuses(undefined, signal)) && (await refuses(anotherProject(projectId), signal))) return;
      throw new DestinationError(
        `${roleArn} can be assumed without this project's external id, so others could write to your bucket through this service; ` +
          `add the condition {"StringEquals": {"sts:ExternalId": "${projectId}"}} to its trust policy`,
      );
    },
    close: () => void opened?.then((client) => client.destroy()).catch(() => undefined),
  };
}

const RANDOM_CHARACTERS = 16;

/** The id of a project that may have been made in the same millisecond: a pattern such as `prj_01KE*` trusts it. */
function anotherProject(projectId: string): string {
  return projectId.slice(0, -RANDOM_CHARACTERS) + ulid().slice(-RANDOM_CHARACTERS);
}

async function openClient(sdk: Sdk, region: string, limits: NetworkLimits): Promise<STSClient> {
  const options = { ...limits, maxAttempts: 2 };
  const client = new sdk.STSClient(options);
  // Rejects if the operator has set no region.
  const hasRegion = await client.config.region().then(
    () => true,
    () => false,
  );
  if (hasRegion) return client;
  client.destroy();
  return new sdk.STSClient({ ...options, region });
}

function readCredentials(issued: import('@aws-sdk/client-sts').Credentials | undefined): Credentials {
  const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = issued ?? {};
  if (!AccessKeyId || !SecretAccessKey || !SessionToken || !Expiration)
    throw new DestinationError('STS issued no credentials for the role');
  return {
    accessKeyId: AccessKeyId,
    secretAccessKey: SecretAccessKey,
    sessionToken: SessionToken,
    expiration: Expiration,
  };
}

function explainRefusal(error: unknown, { roleArn, projectId }: RoleSettings): DestinationError | undefined {
  if (!(error instanceof Error)) return undefined;
  if (error.name === 'AccessDenied')
    return new DestinationError(
      `${roleArn} cannot be assumed; its trust policy must allow sts:AssumeRole with the external id ${projectId} ` +
        `(${clean(error.message, 250)})`,
    );
  if (error.name !== 'CredentialsProviderError') return undefined;
  return new DestinationError('this service has no AWS credentials to assume roles with; ask its operator');
}
