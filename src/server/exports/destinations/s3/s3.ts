/** Exports to buckets of AWS S3, and of other stores with its API. */
import type { S3Client, S3ClientConfig } from '@aws-sdk/client-s3';
import { silenceAwsNodeWarning } from '../../../../config/process-env.js';
import type { GuardOptions } from '../../../net/destination.js';
import { writeNewer } from '../compare-and-swap.js';
import { type DestinationContext, DestinationError, type OpenDestination } from '../destination.js';
import { probeName, probeStore } from '../probe.js';
import {
  type Bucket,
  createSemaphore,
  limitAnswers,
  type Semaphore,
  sendTraceparent,
  signBodies,
} from './bucket.js';
import { networkLimits, STALL_TIMEOUT_MS } from './network.js';
import { openRole, type Role } from './role.js';
import { openStore, writeStreamed } from './write.js';

/** The SDK sends requests for such names to hosts of other services of AWS, even beside an `endpoint`. */
const OTHER_THAN_BUCKET = /(?:--[a-z]+-s3|\.mrap)$/;
const DEFAULT_REGION = 'us-east-1';
const MIB = 1024 * 1024;
const PART_BYTES = 8 * MIB;
/** The buffered uploads of the process; each takes 16 MiB. */
const BUFFERED = createSemaphore(4);

/** The measures of a destination, and how the host of an `endpoint` is found and trusted. */
export type S3Options = {
  /** Objects above it are uploaded in parts of `partBytes`, which S3 requires to be 5 MiB at least. */
  multipartBytes?: number;
  partBytes?: number;
  buffered?: Semaphore;
  stallTimeoutMs?: number;
  resolve?: GuardOptions['resolve'];
  ca?: string;
};

/** Opens a bucket without connecting to it. Rejects with `DestinationError` if its settings contradict each other. */
export async function openS3(context: DestinationContext, options: S3Options = {}): Promise<OpenDestination> {
  const kind = findCredentialsKind(context);
  const role = kind === 'role' ? await openContextRole(context, options) : undefined;
  const { client, ...bucket } = await openBucket(context, role, options);
  const store = openStore({ client, ...bucket });
  return {
    store,
    write: (object, control) => writeNewer(store, object, control),
    writeStreamed: (object, control) => writeStreamed({ client, ...bucket }, object, control),
    probe: async (signal) => {
      await role?.checkTrust(signal);
      await probeStore(store, probeName(context), signal);
    },
    close: async () => {
      client.destroy();
      role?.close();
    },
  };
}

/** Finds whose credentials are used. Throws if none are allowed, or if the settings contradict each other. */
function findCredentialsKind({
  destination,
  ambientCredentials,
  isOperators = false,
}: DestinationContext): 'keys' | 'role' | 'ambient' {
  const { accessKeyId, secretAccessKey, endpoint, roleArn, bucket } = destination;
  if (OTHER_THAN_BUCKET.test(bucket))
    throw new DestinationError('the bucket is not one of general purpose; use another bucket');
  if ((accessKeyId === '') !== (secretAccessKey === ''))
    throw new DestinationError('access_key_id and secret_access_key need each other; set both or neither');
  if (accessKeyId !== '') return 'keys';
  if (isOperators) return 'ambient';
  if (endpoint !== '')
    throw new DestinationError('an endpoint needs access_key_id and secret_access_key; set both');
  if (roleArn !== '') return 'role';
  if (ambientCredentials.includes(bucket)) return 'ambient';
  throw new DestinationError(
    'the bucket needs credentials; set role_arn, or access_key_id and secret_access_key',
  );
}

async function openContextRole(context: DestinationContext, options: S3Options): Promise<Role> {
  const { destination, projectId, exportId } = context;
  const sdk = await loadAws(() => import('@aws-sdk/client-sts'));
  const { roleArn, region } = destination;
  const settings = { roleArn, projectId, exportId, region: region || DEFAULT_REGION };
  return openRole(sdk, settings, networkLimits(options.stallTimeoutMs ?? STALL_TIMEOUT_MS));
}

async function openBucket(
  context: DestinationContext,
  role: Role | undefined,
  options: S3Options,
): Promise<Bucket> {
  const sdk = await loadAws(() => import('@aws-sdk/client-s3'));
  const { accessKeyId, secretAccessKey, bucket, endpoint } = context.destination;
  const keys = accessKeyId === '' ? role?.credentials : { accessKeyId, secretAccessKey };
  const client: S3Client = new sdk.S3Client({
    ...clientConfig(context, options),
    ...(endpoint !== '' && endpointConfig(endpoint, context)),
    ...(keys !== undefined && { credentials: keys }),
  });
  limitAnswers(client);
  signBodies(client);
  sendTraceparent(client);
  return {
    sdk,
    client,
    name: bucket,
    multipartBytes: options.multipartBytes ?? 64 * MIB,
    partBytes: options.partBytes ?? PART_BYTES,
    buffered: options.buffered ?? BUFFERED,
    session: role,
  };
}

function clientConfig(
  { destination, allowInsecure, isOperators = false }: DestinationContext,
  options: S3Options,
): S3ClientConfig {
  const guard = destination.endpoint === '' || isOperators ? undefined : { allowInsecure, ...options };
  return {
    ...networkLimits(options.stallTimeoutMs ?? STALL_TIMEOUT_MS, guard),
    region: destination.region || DEFAULT_REGION,
    retryMode: 'standard',
    // The pipeline retries.
    maxAttempts: 2,
    // Requests go to the bucket's own host, whatever its name, its region or an answer says.
    followRegionRedirects: false,
    disableS3ExpressSessionAuth: true,
    // Every write states its SHA-256. Other stores may know no other checksum.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    expectContinueHeader: false,
  };
}

/** Sets all that the SDK would read in the operator's environment, which is of no concern to a customer's host. */
function endpointConfig(endpoint: string, { allowInsecure }: DestinationContext): S3ClientConfig {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (url === undefined || !(url.protocol === 'https:' || (allowInsecure && url.protocol === 'http:')))
    throw new DestinationError('the endpoint must be an https url');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new DestinationError('the endpoint must be a url without credentials, query and fragment');
  return {
    endpoint: url.href,
    forcePathStyle: true,
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    useArnRegion: false,
    useAccelerateEndpoint: false,
    defaultsMode: 'standard',
    authSchemePreference: ['aws.auth#sigv4'],
    userAgentAppId: '',
    defaultUserAgentProvider: async () => [['attestation-service']],
  };
}

function loadAws<T>(load: () => Promise<T>): Promise<T> {
  silenceAwsNodeWarning();
  return load().catch(missingPackage);
}

function missingPackage(): never {
  throw new DestinationError(
    'this service lacks the SDK of S3; its operator installs it with `npm install @aws-sdk/client-s3 @aws-sdk/client-sts`',
  );
}
