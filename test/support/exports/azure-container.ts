/** A container of Azurite as a destination, behind a proxy. */
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { create } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import { DestinationKind, ExportDestinationSchema } from '../../../gen/attestation/v1/exports_pb.js';
import {
  type AzureOptions,
  openAzureBlobWith,
} from '../../../src/server/exports/destinations/azure/open-azure-blob.js';
import {
  type DestinationContext,
  destinationMembers,
  type OpenDestination,
} from '../../../src/server/exports/destinations/destination.js';
import { type FaultProxy, startFaultProxy } from '../breaking/fault-proxy.js';
import { AZURITE_ACCOUNT, type Azurite } from './azurite.js';
import type { StoreScene } from './store-cases.js';

export type AzureScene = {
  container: string;
  sas: string;
  proxy: FaultProxy;
  /** Opens the container until the test ends. */
  open(context?: ContextChange, options?: AzureOptions): Promise<OpenDestination>;
};

type ContextChange = Partial<Omit<DestinationContext, 'destination'>> & {
  destination?: { accountUrl?: string; container?: string; sasToken?: string };
};

let containers = 0;

/** Makes a container and a proxy before it. */
export async function setAzureScene(t: Test, azurite: Azurite): Promise<AzureScene> {
  const container = `container-${++containers}`;
  await azurite.owner.createContainer(container);
  const proxy = await startFaultProxy(t, `http://127.0.0.1:${azurite.port}`);
  const sas = azurite.sas(container);
  return {
    container,
    sas,
    proxy,
    open: async ({ destination, ...context } = {}, options = {}) => {
      const opened = await openAzureBlobWith(
        options,
        makeAzureContext({
          destination: {
            accountUrl: `${proxy.url}/${AZURITE_ACCOUNT}`,
            container,
            sasToken: sas,
            ...destination,
          },
          ...context,
        }),
      );
      t.teardown(() => opened.close());
      return opened;
    },
  };
}

/** What opening a container needs. */
export function makeAzureContext({ destination, ...context }: ContextChange): DestinationContext {
  return {
    destination: destinationMembers(
      create(ExportDestinationSchema, {
        kind: DestinationKind.AZURE_BLOB,
        prefix: 'copies',
        ...destination,
      }),
    ),
    exportId: 'exp_01KE8GAT4V6W8X0Y2Z4A6B8C0D',
    projectId: 'prj_01KE8G1A2B3C4D5E6F7G8H9J0K',
    allowInsecure: true,
    ambientCredentials: [],
    temporaryDirectory: tmpdir(),
    ...context,
  };
}

/** The container as the cases of all stores take it. */
export async function makeAzureStore(t: Test, azurite: Azurite): Promise<StoreScene> {
  const { container, sas, proxy, open } = await setAzureScene(t, azurite);
  const blob = (name: string) => azurite.owner.getContainerClient(container).getBlobClient(name);
  const signature = new URLSearchParams(sas).get('sig') ?? '';
  return {
    proxy,
    secrets: [sas, signature, encodeURIComponent(signature)],
    open: ({ limits, partBytes = 512 * 1024 } = {}) =>
      open({}, { singleBytes: partBytes * 2, blockBytes: partBytes, ...(limits && { limits }) }),
    look: async (name) => {
      if (!(await blob(name).exists())) return undefined;
      const { metadata, contentLength: bytes = 0, contentType = '' } = await blob(name).getProperties();
      return { revision: metadata?.revision ?? '', sha256: metadata?.sha256 ?? '', bytes, contentType };
    },
    md5: async (name) => {
      const hash = createHash('md5');
      const { readableStreamBody } = await blob(name).download();
      for await (const chunk of readableStreamBody ?? []) hash.update(chunk as Buffer);
      return hash.digest('base64');
    },
  };
}
