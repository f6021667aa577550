/** Looks for copies of a text wherever the service keeps or sends something. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pool } from '../../../src/server/database/connect.js';

/** Every row of every table, all columns as text, and what statistics hold of columns: a line each. */
export async function dumpTables(pool: Pool): Promise<string[]> {
  const tables = await pool<{ name: string }[]>`
    SELECT quote_ident(relname) AS name FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'm') ORDER BY relname`;
  const lines: string[] = [];
  for (const name of [...tables.map((table) => table.name), 'pg_stats', 'pg_stat_activity']) {
    const rows = await pool.unsafe<{ row: string }[]>(`SELECT t::text AS row FROM ${name} t`);
    lines.push(...rows.map(({ row }) => `${name} ${row}`));
  }
  return lines;
}

/** What bytes look like as text: as they are, in hex, and within any base64. */
function spellingsOf(bytes: Uint8Array): string[] {
  const buffer = Buffer.from(bytes);
  const base64 = [0, 1, 2].flatMap((before) => {
    const shifted = Buffer.concat([Buffer.alloc(before), buffer]);
    // Only characters that no neighbouring byte has a bit in.
    const own = [Math.ceil((before * 8) / 6), Math.floor((shifted.length * 8) / 6)] as const;
    return [shifted.toString('base64').slice(...own), shifted.toString('base64url').slice(...own)];
  });
  return [buffer.toString('latin1'), buffer.toString('hex'), ...base64];
}

/** The lines that hold any of these bytes, in any spelling. */
export function findTraces(lines: readonly string[], secrets: readonly Uint8Array[]): string[] {
  const spelled = secrets.flatMap(spellingsOf);
  return lines.filter((line) => spelled.some((spelling) => line.includes(spelling)));
}

/** The files of a folder, and of those within it, as Latin-1 text. */
export async function readFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name), 'latin1')));
}
