import type { JsonObject } from '@bufbuild/protobuf';
import { UsageError } from '../cli.js';
import { readJsonFlag } from './client-flags.js';

/** Flags for metadata and its schema. */
export type MetadataFlags = { schema?: string; metadata?: string };

/** Reads the metadata with its schema name. Returns undefined if --metadata is not given. Throws UsageError. */
export async function readMetadata({ schema, metadata }: MetadataFlags): Promise<JsonObject | undefined> {
  if (metadata === undefined) {
    if (schema !== undefined) throw new UsageError('--schema needs --metadata');
    return undefined;
  }
  const fields = await readJsonFlag('--metadata', metadata);
  if (schema !== undefined && fields.schema !== undefined && fields.schema !== schema) {
    throw new UsageError('--schema differs from the schema in --metadata');
  }
  if (schema === undefined && typeof fields.schema !== 'string') {
    throw new UsageError('--metadata has no schema: add a member "schema", or use --schema');
  }
  return schema === undefined ? fields : { ...fields, schema };
}
