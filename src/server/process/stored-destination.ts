import { fromJson, type JsonObject } from '@bufbuild/protobuf';
import { ExportDestinationSchema } from '../../../gen/attestation/v1/exports_pb.js';
import type { Config } from '../../config/config.js';
import { destinationMembers, type OpenDestination } from '../export/destination.js';
import type { StoredExport } from '../export/destinations.js';
import { openDestination } from '../export/open-destination.js';
import { decryptSecret } from '../keys/encryption.js';
import type { KeyRing } from '../keys/key-ring.js';

/** What opening stored destinations needs. `keys`: sub-keys for encryption. */
type StoredDestinationDeps = {
  config: Pick<Config, 'allowInsecureDestinations' | 'ambientCredentials'>;
  keys: KeyRing;
  temporaryDirectory: string;
};

/** Opens the destination of a stored export with its decrypted secrets. */
export function openStoredDestination(
  { config, keys, temporaryDirectory }: StoredDestinationDeps,
  { id, projectId, destination, secrets }: StoredExport,
): Promise<OpenDestination> {
  const members = { ...destination, ...(JSON.parse(decryptSecret(keys, secrets, id)) as JsonObject) };
  return openDestination({
    destination: destinationMembers(fromJson(ExportDestinationSchema, members)),
    exportId: id,
    projectId,
    allowInsecure: config.allowInsecureDestinations,
    ambientCredentials: config.ambientCredentials,
    temporaryDirectory,
  });
}
