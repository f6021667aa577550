/** Opens a store of objects of the operator, as settings name it. */
import { tmpdir } from 'node:os';
import { create, fromJson } from '@bufbuild/protobuf';
import { DestinationKind, ExportDestinationSchema } from '../../../../gen/attestation/v1/exports_pb.js';
import type { ObjectStorage } from '../../../config/object-storage.js';
import { destinationMembers } from './destination.js';
import type { ObjectStore } from './object-store.js';
import { openDestination } from './open-destination.js';

/** An open store; `close` ends its connections. */
export type OperatorStore = { store: ObjectStore; close(): Promise<void> };

const KINDS = { s3: DestinationKind.S3, gs: DestinationKind.GCS, az: DestinationKind.AZURE_BLOB } as const;

/**
 * Opens the store without connecting to it. Without credentials in the setting its SDK finds them. Rejects with
 * `DestinationError` if the settings contradict each other or the SDK is not installed.
 */
export async function openOperatorStore({ kind, bucket, options }: ObjectStorage): Promise<OperatorStore> {
  const members = fromJson(ExportDestinationSchema, options);
  const named = kind === 'az' ? { container: bucket } : { bucket };
  const { store, close } = await openDestination({
    destination: destinationMembers(
      create(ExportDestinationSchema, { ...members, ...named, kind: KINDS[kind] }),
    ),
    exportId: '',
    projectId: '',
    allowInsecure: true,
    isOperators: true,
    ambientCredentials: [],
    temporaryDirectory: tmpdir(),
  });
  if (store === undefined) throw new Error(`a destination of ${kind} has no store of objects`);
  return { store, close };
}

/** The full name of an object below the prefix of a store. */
export function objectName({ prefix }: ObjectStorage, name: string): string {
  return prefix === '' ? name : `${prefix}/${name}`;
}

/** The store's location for messages to operators: without its options, which may be secret. */
export function storageLocation({ kind, bucket }: ObjectStorage, name: string): string {
  return `${kind}://${bucket}/${name}`;
}
