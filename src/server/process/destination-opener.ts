import { tmpdir } from 'node:os';
import type { ExportDestination } from '../../../gen/attestation/v1/exports_pb.js';
import type { Config } from '../../config/config.js';
import { destinationMembers, type OpenDestination } from '../exports/destinations/destination.js';
import { openDestination } from '../exports/destinations/open-destination.js';

/** The settings that decide which destinations may be opened, with which credentials. */
export type DestinationSettings = Pick<
  Config,
  'allowInsecureDestinations' | 'ambientCredentials' | 'extraCaFile' | 'programPath'
>;

/** The destination of an export, with its secrets. */
type Target = { exportId: string; projectId: string; destination: ExportDestination };

/** Creates a function that opens destinations by these settings. It rejects with `DestinationError` if that fails. */
export function destinationOpener(
  settings: DestinationSettings,
): (target: Target) => Promise<OpenDestination> {
  const { allowInsecureDestinations: allowInsecure, ambientCredentials, extraCaFile, programPath } = settings;
  return ({ destination, ...target }) =>
    openDestination(
      {
        ...target,
        destination: destinationMembers(destination),
        allowInsecure,
        ambientCredentials,
        temporaryDirectory: tmpdir(),
      },
      { extraCaFile, programPath },
    );
}
