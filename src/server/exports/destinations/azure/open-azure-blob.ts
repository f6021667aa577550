/** Azure Blob Storage as a destination of exports. */
import http from 'node:http';
import https from 'node:https';
import { type GuardOptions, guardedAgents } from '../../../net/destination.js';
import { writeNewer } from '../compare-and-swap.js';
import { type DestinationContext, DestinationError, type OpenDestination } from '../destination.js';
import { createHttpClient, HTTP_LIMITS, type HttpLimits } from '../http-client.js';
import { loadSdk } from '../load-sdk.js';
import { probeName, probeStore } from '../probe.js';
import { openContainer } from './container.js';
import {
  type Credential,
  describeFailures,
  findCredentialProblem,
  operatorCredential,
} from './credential.js';
import { bareSas, redactSas } from './sas.js';
import { createTransport } from './transport.js';

const MIB = 1024 * 1024;
const SINGLE_BYTES = 64 * MIB;
const BLOCK_BYTES = 16 * MIB;

/** Differences from the defaults. `credential` is the operator's. */
export type AzureOptions = {
  limits?: HttpLimits;
  singleBytes?: number;
  blockBytes?: number;
  clock?: () => number;
  credential?: Credential;
  guard?: Pick<GuardOptions, 'resolve' | 'ca'>;
};

/** Opens a container. Rejects with `DestinationError` if there are no credentials that it may be opened with. */
export function openAzureBlob(context: DestinationContext): Promise<OpenDestination> {
  return openAzureBlobWith({}, context);
}

/** As `openAzureBlob`, with other limits, credentials and look-ups. */
export async function openAzureBlobWith(
  options: AzureOptions,
  context: DestinationContext,
): Promise<OpenDestination> {
  const { accountUrl, container, sasToken } = context.destination;
  const problem = findCredentialProblem(context, (options.clock ?? Date.now)());
  if (problem !== undefined) throw new DestinationError(problem);
  const { ContainerClient } = await loadSdk('@azure/storage-blob', () => import('@azure/storage-blob'));
  const credential = sasToken === '' ? (options.credential ?? (await operatorCredential())) : undefined;
  const agents = context.isOperators
    ? { httpAgent: new http.Agent({ keepAlive: true }), httpsAgent: new https.Agent({ keepAlive: true }) }
    : guardedAgents({ allowInsecure: context.allowInsecure, ...options.guard });
  const requests = createHttpClient(agents, options.limits ?? HTTP_LIMITS);
  const query = sasToken === '' ? '' : `?${bareSas(sasToken)}`;
  const client = new ContainerClient(
    `${accountUrl.replace(/\/+$/, '')}/${container}${query}`,
    credential && describeFailures(credential),
    { httpClient: createTransport(requests), retryOptions: { maxTries: 1 } },
  );
  const store = openContainer({
    client,
    subject: { container, redact: (text) => redactSas(text, sasToken) },
    singleBytes: options.singleBytes ?? SINGLE_BYTES,
    blockBytes: options.blockBytes ?? BLOCK_BYTES,
  });
  return {
    store,
    write: (object, control) => writeNewer(store, object, control),
    probe: (signal) => probeStore(store, probeName(context), signal),
    close: requests.close,
  };
}
