import { DestinationKind } from '../../../../gen/attestation/v1/exports_pb.js';
import type { DestinationContext, OpenDestination } from './destination.js';

/**
 * Options of some kinds. `extraCaFile`: `NODE_EXTRA_CA_CERTS`, which the SDKs follow by Node, and git does not.
 * `programPath`: the folders in which git and ssh are looked for.
 */
type OpenOptions = { extraCaFile?: string | undefined; programPath?: string | undefined };

/**
 * Opens a destination. The code of its kind, and the SDK that it uses, are loaded with the first destination of that kind.
 * Throws `DestinationError` if that fails.
 */
export async function openDestination(
  context: DestinationContext,
  { extraCaFile, programPath }: OpenOptions = {},
): Promise<OpenDestination> {
  switch (context.destination.kind) {
    case DestinationKind.S3:
      return (await import('./s3/s3.js')).openS3(context);
    case DestinationKind.GCS:
      return (await import('./gcs/open-gcs.js')).openGcs(context);
    case DestinationKind.AZURE_BLOB:
      return (await import('./azure/open-azure-blob.js')).openAzureBlob(context);
    case DestinationKind.GIT_REPO:
      return (await import('./git/git.js')).openGit(context, {
        caFile: extraCaFile,
        path: programPath,
      });
    default:
      throw new Error(`the kind ${context.destination.kind} of a destination is not known`);
  }
}
