import type { JsonObject } from '@bufbuild/protobuf';
import { UsageError } from '../cli.js';
import { readJsonFlag } from './client-flags.js';

/** Flags of commands that take metadata. */
export type MetadataFlags = { schema?: string; metadata?: string };

/** The metadata that the flags give, with the name of its schema in it; undefined when they give none. */
export async function readMetadata({ schema, metadata }: MetadataFlags): Promise<JsonObject | undefined> {
  if (metadata === undefined) {
    if (schema !== undefined) throw new UsageError('--schema needs --metadata');
    return undefined;
  }
  const fields = await readJsonFlag('--metadata', metadata);
  if (schema !== undefined && fields.schema !== undefined && fields.schema !== schema) {
    throw new UsageError('--schema is another than the one that --metadata names');
  }
  if (schema === undefined && typeof fields.schema !== 'string') {
    throw new UsageError('--metadata names no schema: add a member "schema", or use --schema');
  }
  return schema === undefined ? fields : { ...fields, schema };
}
