/** Google Cloud Storage as a destination of exports. */
import http from 'node:http';
import https from 'node:https';
import { untilAborted } from '../../../core/until-aborted.js';
import { writeNewer } from '../compare-and-swap.js';
import { type DestinationContext, DestinationError, type OpenDestination } from '../destination.js';
import { createHttpClient, HTTP_LIMITS, type HttpClient, type HttpLimits } from '../http-client.js';
import { loadSdk } from '../load-sdk.js';
import { probeName, probeStore } from '../probe.js';
import { type GcsEndpoint, openBucket } from './bucket.js';
import {
  ANONYMOUS,
  asOperator,
  asServiceAccount,
  findAccountProblem,
  type Identity,
  type OperatorCredentials,
} from './credentials.js';

/** The library asks a metadata server that may not exist. */
const FIND_MS = 10_000;

/** Differences from Google's own service. `iamEndpoint` is of the IAM Service Account Credentials API. */
export type GcsOptions = {
  apiEndpoint?: string;
  iamEndpoint?: string;
  limits?: HttpLimits;
  clock?: () => number;
};

/** Opens a bucket. Rejects with `DestinationError` if the project may not use the service account or bucket. */
export function openGcs(context: DestinationContext): Promise<OpenDestination> {
  return openGcsWith({}, context);
}

/** As `openGcs`, with other endpoints and limits. */
export async function openGcsWith(
  options: GcsOptions,
  context: DestinationContext,
): Promise<OpenDestination> {
  const problem = findAccountProblem(context);
  if (problem !== undefined) throw new DestinationError(problem);
  const sdk = await loadSdk('@google-cloud/storage', () => import('@google-cloud/storage'));
  const { endpoint, operator } = await findOperator(sdk, options);
  const agents = {
    httpAgent: new http.Agent({ keepAlive: true }),
    httpsAgent: new https.Agent({ keepAlive: true }),
  };
  const client = createHttpClient(agents, options.limits ?? HTTP_LIMITS);
  const { bucket, serviceAccount } = context.destination;
  const store = openBucket({
    sdk,
    http: client,
    identity: identityOf(serviceAccount, { operator, client, options }),
    subject: { bucket, account: serviceAccount === '' ? 'this service' : serviceAccount },
    endpoint,
  });
  return {
    store,
    write: (object, control) => writeNewer(store, object, control),
    probe: (signal) => probeStore(store, probeName(context), signal),
    close: client.close,
  };
}

type IdentityDeps = {
  operator: Operator['operator'];
  client: HttpClient;
  options: GcsOptions;
};

function identityOf(serviceAccount: string, { operator, client, options }: IdentityDeps): Identity {
  if (operator === undefined) return ANONYMOUS;
  const source = asOperator(operator);
  if (serviceAccount === '') return source;
  const { iamEndpoint = `https://iamcredentials.${operator.universeDomain}`, clock = Date.now } = options;
  return asServiceAccount({ http: client, source, endpoint: iamEndpoint, clock }, serviceAccount);
}

type Operator = { operator: OperatorCredentials | undefined; endpoint: GcsEndpoint };

/** Finds the operator's credentials. An emulator (STORAGE_EMULATOR_HOST, which the SDK reads) needs none. */
async function findOperator(
  { Storage }: typeof import('@google-cloud/storage'),
  options: GcsOptions,
): Promise<Operator> {
  // The project is not needed for objects; without one the library runs gcloud to find it.
  const { authClient, customEndpoint, apiEndpoint } = new Storage({ projectId: 'unused' });
  if (customEndpoint && options.apiEndpoint === undefined)
    return { operator: undefined, endpoint: otherEndpoint(apiEndpoint) };
  try {
    const operator = await untilAborted(authClient.getClient(), AbortSignal.timeout(FIND_MS));
    if (options.apiEndpoint !== undefined) return { operator, endpoint: otherEndpoint(options.apiEndpoint) };
    return { operator, endpoint: { universeDomain: operator.universeDomain } };
  } catch {
    throw new DestinationError('this service has no Google credentials; ask its operator');
  }
}

/** The SDK uses the auth client for hosts of the universe only. */
function otherEndpoint(apiEndpoint: string): GcsEndpoint {
  return { apiEndpoint, universeDomain: new URL(apiEndpoint).hostname };
}
