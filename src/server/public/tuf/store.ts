import { fromUtf8 } from '../../../proof/bytes/encoding.js';
import type { Sql } from '../../database/connect.js';
import {
  metadataText,
  parseMetadata,
  type TufMetadata,
  type TufRole,
  type TufTarget,
  targetPath,
} from './metadata.js';

/** The newest metadata of each role. */
export type Newest = TufMetadata;

/** Locks the repository against other writers until the transaction ends. */
export async function lockTuf(tx: Sql): Promise<void> {
  await tx`SELECT pg_advisory_xact_lock(hashtextextended('tuf', 0))`;
}

/** Reads the newest metadata of each role, in one statement. Returns undefined if there is no repository. */
export async function findNewest(sql: Sql): Promise<Newest | undefined> {
  const rows = await sql<{ role: TufRole; content: Uint8Array }[]>`
    SELECT DISTINCT ON (role) role, content FROM tuf_file WHERE role IS NOT NULL ORDER BY role, version DESC`;
  const text = (role: TufRole) =>
    fromUtf8(rows.find((row) => row.role === role)?.content ?? new Uint8Array());
  if (rows.length === 0) return undefined;
  return {
    root: parseMetadata('root', text('root')),
    targets: parseMetadata('targets', text('targets')),
    snapshot: parseMetadata('snapshot', text('snapshot')),
    timestamp: parseMetadata('timestamp', text('timestamp')),
  };
}

/** Reads files by their paths below the repository's URL. */
export async function findTufFiles(sql: Sql, names: readonly string[]): Promise<Map<string, Uint8Array>> {
  const rows = await sql<{ name: string; content: Uint8Array }[]>`
    SELECT name, content FROM tuf_file WHERE name = ANY(${sql.array([...names])})`;
  return new Map(rows.map(({ name, content }) => [name, content]));
}

/** The names of all files. */
export async function listTufFiles(sql: Sql): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`SELECT name FROM tuf_file ORDER BY created_at, name`;
  return rows.map(({ name }) => name);
}

/** Reads the targets that targets metadata names. */
export async function findTufTargets(sql: Sql, { signed }: TufMetadata['targets']): Promise<TufTarget[]> {
  const paths = Object.entries(signed.targets).map(([name, { hashes }]) => ({
    name,
    path: `targets/${hashes.sha256}.${name}`,
  }));
  const files = await findTufFiles(
    sql,
    paths.map(({ path }) => path),
  );
  return paths.flatMap(({ name, path }) => {
    const content = files.get(path);
    return content === undefined ? [] : [{ name, content: fromUtf8(content) }];
  });
}

/** Stores metadata of a new version. Throws if the role has that version, or for the timestamp a higher one. */
export async function insertMetadata(tx: Sql, role: TufRole, metadata: TufMetadata[TufRole]): Promise<void> {
  const { version } = metadata.signed;
  const name = role === 'timestamp' ? 'timestamp.json' : `${version}.${role}.json`;
  const inserted = await tx`
    INSERT INTO tuf_file (name, role, version, content)
    VALUES (${name}, ${role}, ${version}, ${Buffer.from(metadataText(metadata))})
    ON CONFLICT (name) DO UPDATE SET version = excluded.version, content = excluded.content, created_at = excluded.created_at
    WHERE tuf_file.role = 'timestamp' AND tuf_file.version < excluded.version
    RETURNING name`;
  if (inserted.length === 0) throw new Error(`${name} exists`);
}

/** Stores a target, unless it is stored. */
export async function insertTarget(tx: Sql, target: TufTarget): Promise<void> {
  await tx`
    INSERT INTO tuf_file (name, content) VALUES (${targetPath(target)}, ${Buffer.from(target.content)})
    ON CONFLICT (name) DO NOTHING`;
}

/** Deletes snapshots that were replaced more than a day ago: no client asks for them. */
export async function deleteOldSnapshots(tx: Sql): Promise<void> {
  await tx`
    DELETE FROM tuf_file WHERE role = 'snapshot' AND created_at < clock_timestamp() - interval '1 day'
      AND version < (SELECT max(version) FROM tuf_file WHERE role = 'snapshot')`;
}
