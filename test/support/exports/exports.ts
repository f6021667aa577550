/** What tests of shipping have in common: exports to a test's own store, and what is in it. */
import { gunzipSync } from 'node:zlib';
import { create, type JsonObject, toJson } from '@bufbuild/protobuf';
import { ulid } from 'ulid';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import {
  DestinationKind,
  ExportCompression,
  ExportDestinationSchema,
  ExportStart,
} from '../../../gen/attestation/v1/exports_pb.js';
import { createLogger } from '../../../src/server/core/logger.js';
import type { Pool } from '../../../src/server/database/connect.js';
import { insertExport } from '../../../src/server/exports/store/exports.js';
import { encryptSecret } from '../../../src/server/keys/encryption.js';
import type { KeyRing } from '../../../src/server/keys/key-ring.js';
import type { Pipeline } from '../../../src/server/pipeline/pipeline.js';
import { BUCKET, OWNER } from './s3/fixture.js';
import type { S3Server } from './s3/s3-server.js';
import { readObject } from './s3/store.js';

/** A line of an object. */
export type Line = { submission: JsonObject & { id: string }; bundle: JsonObject };

type NewExport = {
  projectId: string;
  keys: KeyRing;
  schema?: string | null;
  start?: ExportStart;
  compression?: ExportCompression;
  prefix?: string;
};

/** Stores an export to the store's bucket, as the API does after its probe. @returns its id */
export async function makeExport(pool: Pool, { url }: { url: string }, made: NewExport): Promise<string> {
  const {
    projectId,
    keys,
    schema = null,
    start = ExportStart.NOW,
    compression = ExportCompression.NONE,
  } = made;
  const id = `exp_${ulid()}`;
  const destination = create(ExportDestinationSchema, {
    kind: DestinationKind.S3,
    bucket: BUCKET,
    prefix: made.prefix ?? 'copies',
    endpoint: url,
    accessKeyId: OWNER.accessKeyId,
  });
  const secrets = encryptSecret(keys, JSON.stringify({ secretAccessKey: OWNER.secretAccessKey }), id);
  const members = toJson(ExportDestinationSchema, destination) as JsonObject;
  const row = { id, projectId, environment: Environment.LIVE, destination: members, secrets };
  await pool.begin((tx) => insertExport(tx, { ...row, schema, start, compression }, 1_000));
  return id;
}

/** The objects of an export in the store, by their names. */
export async function objectsOf(store: S3Server, exportId: string): Promise<Map<string, Buffer>> {
  const found = new Map<string, Buffer>();
  for (const [name, object] of store.buckets.get(BUCKET)?.objects ?? []) {
    if (!name.includes(exportId) || name.endsWith('/probe')) continue;
    const pieces: Buffer[] = [];
    const size = object.segments.reduce((sum, { bytes }) => sum + bytes, 0);
    if (size > 0)
      for await (const piece of readObject(object, { start: 0, end: size })) pieces.push(piece as Buffer);
    found.set(name, Buffer.concat(pieces));
  }
  return found;
}

/** The lines of an export's objects, in the order of their names. */
export async function linesOf(store: S3Server, exportId: string): Promise<Line[]> {
  const objects = [...(await objectsOf(store, exportId))].filter(([name]) => !name.endsWith('manifest.json'));
  return objects
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, bytes]) => {
      const text = (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString();
      return text
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Line);
    });
}

/** Keeps what shipping logs from now on: the fields of each line, and its message. */
export function exportsLog({ exports }: Pipeline): Record<string, unknown>[] {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({
    level: 'info',
    destination: {
      write: (text) => {
        const { msg: message, ...fields } = JSON.parse(text) as Record<string, unknown>;
        lines.push({ ...fields, message });
      },
    },
  });
  exports.log = log;
  return lines;
}
