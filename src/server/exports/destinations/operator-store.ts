/** Opens a store of the operator, as settings name it: a folder, a bucket, or a container of Azure. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, fromJson } from '@bufbuild/protobuf';
import { DestinationKind, ExportDestinationSchema } from '../../../../gen/attestation/v1/exports_pb.js';
import type { ObjectStorage, Storage } from '../../../config/object-storage.js';
import { destinationMembers } from './destination.js';
import { folderStore } from './folder-store.js';
import type { ObjectStore } from './object-store.js';
import { openDestination } from './open-destination.js';

/** An open store, and the names of objects in it. */
export type OperatorStore = {
  store: ObjectStore;
  /** An object's full name, by its name below the setting's prefix. */
  nameOf(name: string): string;
  /** Its location for messages to operators, without the setting's options, which may be secret. */
  location(name: string): string;
  /** Ends the connections. */
  close(): Promise<void>;
};

const KINDS = { s3: DestinationKind.S3, gs: DestinationKind.GCS, az: DestinationKind.AZURE_BLOB } as const;

/**
 * Opens a store without connecting to it. Without credentials in the setting its SDK finds them. Rejects with
 * `DestinationError` if the settings contradict each other or the SDK is not installed.
 */
export async function openOperatorStore(config: Storage): Promise<OperatorStore> {
  if ('storage' in config) return openObjectStorage(config.storage);
  return {
    store: folderStore(config.folder),
    nameOf: (name) => name,
    location: (name) => join(config.folder, name),
    close: async () => {},
  };
}

async function openObjectStorage({ kind, bucket, prefix, options }: ObjectStorage): Promise<OperatorStore> {
  const members = fromJson(ExportDestinationSchema, options);
  const named = kind === 'az' ? { container: bucket } : { bucket };
  const destination = create(ExportDestinationSchema, { ...members, ...named, kind: KINDS[kind] });
  const { store, close } = await openDestination({
    destination: destinationMembers(destination),
    exportId: '',
    projectId: '',
    allowInsecure: true,
    isOperators: true,
    ambientCredentials: [],
    temporaryDirectory: tmpdir(),
  });
  if (store === undefined) throw new Error(`a destination of ${kind} has no store of objects`);
  const nameOf = (name: string) => (prefix === '' ? name : `${prefix}/${name}`);
  return { store, close, nameOf, location: (name) => `${kind}://${bucket}/${nameOf(name)}` };
}
