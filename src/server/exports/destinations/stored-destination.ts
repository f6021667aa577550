import { fromJson, type JsonObject } from '@bufbuild/protobuf';
import {
  type ExportDestination,
  ExportDestinationSchema,
} from '../../../../gen/attestation/v1/exports_pb.js';
import { decryptSecret } from '../../keys/encryption.js';
import type { KeyRing } from '../../keys/key-ring.js';
import { DestinationError } from './destination.js';

/** The stored columns of an export's destination; `secrets` is encrypted. */
export type StoredDestination = { id: string; destination: object; secrets: Uint8Array };

/**
 * Reads the destination of a stored export with its decrypted secrets. Throws `DestinationError` if they cannot be decrypted.
 *
 * @param keys sub-keys for encryption
 */
export function readStoredDestination(
  keys: KeyRing,
  { id, destination, secrets }: StoredDestination,
): ExportDestination {
  const members = JSON.parse(decrypt(keys, secrets, id)) as JsonObject;
  return fromJson(ExportDestinationSchema, { ...(destination as JsonObject), ...members });
}

function decrypt(keys: KeyRing, secrets: Uint8Array, id: string): string {
  try {
    return decryptSecret(keys, secrets, id);
  } catch (cause) {
    const message = "the service cannot decrypt the export's credentials: create the export again";
    throw new DestinationError(message, { cause });
  }
}
