/** Which credentials a container is opened with. */

import { untilAborted } from '../../../core/until-aborted.js';
import { type DestinationContext, DestinationError } from '../destination.js';
import { loadSdk } from '../load-sdk.js';
import { findSasProblem } from './sas.js';

const TOKEN_MS = 30_000;

/** The part of Azure's credentials that its SDKs use. */
export type Credential = {
  getToken(
    scopes: string | string[],
    options?: object,
  ): Promise<{ token: string; expiresOnTimestamp: number } | null>;
};

/** The accounts' names in the hosts of Azure's clouds. Nobody but Azure can have a host of these. */
const AZURE_HOST =
  /^[a-z0-9-]+\.(?:blob\.core\.(?:windows\.net|usgovcloudapi\.net|chinacloudapi\.cn)|z[0-9]{2}\.blob\.storage\.azure\.net)$/;

/** Explains why a container may not be opened; undefined if it may. */
export function findCredentialProblem(context: DestinationContext, nowMs: number): string | undefined {
  const { accountUrl, sasToken } = context.destination;
  if (!URL.canParse(accountUrl)) return 'account_url is not a url';
  const { protocol, hostname, search, hash, username, password } = new URL(accountUrl);
  if (`${search}${hash}${username}${password}` !== '')
    return 'account_url must not hold credentials, a query or a fragment; put the signature into sas_token';
  if (sasToken !== '') return findSasProblem(sasToken, nowMs);
  if (!context.isOperators && !context.ambientCredentials.includes(hostname))
    return 'give sas_token, a shared access signature of the container';
  if (protocol === 'https:' && AZURE_HOST.test(hostname)) return undefined;
  return `the credentials of this service are for accounts of Azure only; give sas_token for ${hostname}`;
}

/** The operator's own credential, as Azure's SDK finds it (DefaultAzureCredential). */
export async function operatorCredential(): Promise<Credential> {
  const { DefaultAzureCredential } = await loadSdk('@azure/identity', () => import('@azure/identity'));
  return new DefaultAzureCredential();
}

/** A credential whose errors are for the owner of the destination, and hide the operator's configuration. */
export function describeFailures(credential: Credential): Credential {
  return {
    getToken: async (scopes, options) => {
      try {
        const bound = AbortSignal.timeout(TOKEN_MS);
        return await untilAborted(credential.getToken(scopes, options), bound);
      } catch {
        throw new DestinationError("this service's own Azure credentials do not work; ask its operator");
      }
    },
  };
}
