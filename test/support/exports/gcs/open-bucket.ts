/** A bucket as a destination: server, proxy, the operator's credentials and an account that the bucket lets write. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import { DestinationKind, ExportDestinationSchema } from '../../../../gen/attestation/v1/exports_pb.js';
import {
  type DestinationContext,
  destinationMembers,
  type OpenDestination,
} from '../../../../src/server/exports/destinations/destination.js';
import { type GcsOptions, openGcsWith } from '../../../../src/server/exports/destinations/gcs/open-gcs.js';
import { type FaultProxy, startFaultProxy } from '../../breaking/fault-proxy.js';
import type { StoreScene } from '../store-cases.js';
import { type GcsServer, startGcsServer } from './gcs-server.js';
import { SUBJECT_TOKEN } from './tokens.js';

const PROJECT_ID = 'prj_01KE8G1A2B3C4D5E6F7G8H9J0K';
export const ACCOUNT = 'p-01ke8g1a2b3c4d5e6f7g8h9j0k@customer.iam.gserviceaccount.com';
export const BUCKET = 'example-attestations';
const EXPORT_ID = 'exp_01KE8GAT4V6W8X0Y2Z4A6B8C0D';

export type GcsScene = {
  server: GcsServer;
  proxy: FaultProxy;
  /** Opens the bucket until the test ends. */
  open(context?: ContextChange, options?: GcsOptions): Promise<OpenDestination>;
};

type ContextChange = Partial<Omit<DestinationContext, 'destination'>> & {
  destination?: { bucket?: string; serviceAccount?: string };
};

/** The bucket as the cases of all stores take it. */
export async function makeGcsStore(t: Test): Promise<StoreScene> {
  const { server, proxy, open } = await setGcsScene(t);
  const find = (name: string) => server.bucket(BUCKET).objects.get(name);
  return {
    proxy,
    secrets: ['ya29.', SUBJECT_TOKEN],
    open: ({ limits } = {}) => open({}, limits && { limits }),
    look: async (name) => {
      const found = find(name);
      if (found === undefined) return undefined;
      const { metadata, size: bytes, contentType } = found;
      return { revision: metadata.revision ?? '', sha256: metadata.sha256 ?? '', bytes, contentType };
    },
    md5: async (name) => find(name)?.md5Hash ?? '',
  };
}

/** Starts the servers, and makes the operator's credentials those of a workload that they know. */
export async function setGcsScene(t: Test, clock?: () => number): Promise<GcsScene> {
  const server = await startGcsServer(t, clock);
  const proxy = await startFaultProxy(t, server.url);
  await useOperatorCredentials(t, server.url);
  server.tokens.allowImpersonation(ACCOUNT);
  server.bucket(BUCKET).grants.set(ACCOUNT, new Set(['get', 'create', 'delete']));
  const endpoints = { apiEndpoint: proxy.url, iamEndpoint: server.url };
  return {
    server,
    proxy,
    open: async (context = {}, options = {}) => {
      const destination = await openGcsWith({ ...endpoints, ...options }, makeGcsContext(context));
      t.teardown(() => destination.close());
      return destination;
    },
  };
}

/** What opening the bucket needs. */
export function makeGcsContext({ destination, ...context }: ContextChange = {}): DestinationContext {
  return {
    destination: destinationMembers(
      create(ExportDestinationSchema, {
        kind: DestinationKind.GCS,
        bucket: BUCKET,
        prefix: 'copies',
        serviceAccount: ACCOUNT,
        ...destination,
      }),
    ),
    exportId: EXPORT_ID,
    projectId: PROJECT_ID,
    allowInsecure: false,
    ambientCredentials: [],
    temporaryDirectory: tmpdir(),
    ...context,
  };
}

/** Writes credentials of workload identity federation, and names their file as an operator does. */
async function useOperatorCredentials(t: Test, url: string): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'gcs-'));
  const [credentials, subject] = [join(dir, 'credentials.json'), join(dir, 'subject')];
  await writeFile(subject, SUBJECT_TOKEN);
  await writeFile(
    credentials,
    JSON.stringify({
      type: 'external_account',
      audience: '//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/a/providers/b',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_url: `${url}/sts/token`,
      credential_source: { file: subject },
    }),
  );
  process.env.GOOGLE_APPLICATION_CREDENTIALS = credentials;
  t.teardown(async () => {
    delete process.env.GOOGLE_APPLICATION_CREDENTIALS;
    await rm(dir, { recursive: true });
  });
}
