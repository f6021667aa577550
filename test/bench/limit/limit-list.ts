// What a page of a list must at least do, for the bare server that lists are held against.
import type { FastifyInstance } from 'fastify';
import type { Pool } from '../../../src/server/database/connect.js';

/** A page of 50, and one to know whether there are more. */
const ROWS = 51;

type Row = {
  id: string;
  index: string;
  at: Date;
  artifact: string;
  leaf: string;
  salt: string;
  metadata: string;
};

/** The first item of an answer, with the parts of it that differ between submissions. */
type Item = {
  id: string;
  log_index: string | number;
  submitted_at: string;
  artifact: { sha256: string };
  leaf_sha256: string;
  metadata_salt: string;
  metadata: object;
};

/**
 * Answers with a page of the newest submissions: 51 rows by one query of the service's own table, their text by filling in
 * a template, made of an answer of the service. No key, no filters, no cursor; the batch is taken from the template.
 */
export async function serveList(
  server: FastifyInstance,
  pool: Pool,
  { answer, projectId }: { answer: string; projectId: string },
): Promise<void> {
  const page = JSON.parse(answer) as Record<string, unknown>;
  const [[name, items] = ['', []]] = Object.entries(page).filter(([, value]) => Array.isArray(value));
  const fill = compileTemplate((items as Item[])[0]!);
  const rest = JSON.stringify({ ...page, [name]: undefined }).slice(1);
  server.get('/*', async (_request, reply) => {
    const rows = await pool<Row[]>`
      SELECT id, log_index AS index, submitted_at AS at, encode(artifact_sha256, 'hex') AS artifact,
             encode(leaf_hash, 'hex') AS leaf, encode(salt, 'hex') AS salt, metadata
      FROM named_submission WHERE project_id = ${projectId}
        AND log_id = (SELECT id FROM log WHERE environment = 1 ORDER BY epoch DESC LIMIT 1)
      ORDER BY log_index DESC LIMIT ${ROWS}`;
    const text = rows
      .slice(0, ROWS - 1)
      .map(fill)
      .join(',');
    reply.header('content-type', 'application/json');
    return `{"${name}":[${text}],${rest}`;
  });
}

/** The text of an item with the values of a row in place of those it has. */
function compileTemplate(item: Item): (row: Row) => string {
  const values: [string, (row: Row) => string][] = [
    [item.id, ({ id }) => id],
    [item.submitted_at, ({ at }) => at.toISOString()],
    [item.artifact.sha256, ({ artifact }) => artifact],
    [item.leaf_sha256, ({ leaf }) => leaf],
    [item.metadata_salt, ({ salt }) => salt],
    [JSON.stringify(item.metadata), ({ metadata }) => metadata],
  ];
  let parts: (string | ((row: Row) => string))[] = [JSON.stringify(item)];
  for (const [text, of] of values) {
    parts = parts.flatMap((part) =>
      typeof part === 'string'
        ? part.split(text).flatMap((piece, n) => (n === 0 ? [piece] : [of, piece]))
        : [part],
    );
  }
  return (row) => {
    let text = '';
    for (const part of parts) text += typeof part === 'string' ? part : part(row);
    return text;
  };
}
