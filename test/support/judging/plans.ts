/** What Postgres does for a query, and how much it reads for it. */
import postgres from 'postgres';

/**
 * How a query was run: the scans with their indexes, those of partitions by the name of the whole table's and none of an
 * empty one, the rows they looked at, the pages touched.
 */
export type Plan = { scans: string[]; rows: number; buffers: number; ms: number };

/** A connection that plans are asked over. */
export type Planner = {
  sql: postgres.Sql<{ bigint: number }>;
  /** Runs the query that `run` sends, planned for its parameters or for any. */
  explain: (run: () => PromiseLike<unknown>, planFor: 'these' | 'any') => Promise<Plan>;
  /** Runs all queries that `run` sends once more, one by one and without effect. */
  explainAll: (
    run: () => PromiseLike<unknown>,
    planFor: 'these' | 'any',
  ) => Promise<(Plan & { text: string })[]>;
  close: () => Promise<void>;
};

type Sent = { text: string; parameters: unknown[] };

type Node = Record<string, unknown> & { Plans?: Node[] };

/** Opens a connection of its own: the statement's text is had from the driver, as the server gets it. */
export function openPlanner(databaseUrl: string): Planner {
  let sent: Sent[] = [];
  const sql = postgres(databaseUrl, {
    max: 1,
    onnotice: () => {},
    connection: { jit: 'off' as never },
    types: { bigint: { to: 20, from: [20], serialize: String, parse: Number } },
    debug: (_connection, text, parameters) => {
      sent.push({ text, parameters: [...parameters] });
    },
  });
  const explainSent = async ({ text, parameters }: Sent, planFor: 'these' | 'any'): Promise<Plan> => {
    const mode = planFor === 'any' ? 'force_generic_plan' : 'force_custom_plan';
    await sql.unsafe(`SET plan_cache_mode = ${mode}; PREPARE asked AS ${text}`);
    const values = parameters.length === 0 ? '' : `(${parameters.map(literal).join()})`;
    const [row] = await sql.unsafe(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE asked${values}`);
    await sql.unsafe('DEALLOCATE asked; RESET plan_cache_mode');
    type Explained = [{ Plan: Node; 'Execution Time': number }];
    if (row === undefined) throw new Error('nothing was explained');
    const [{ Plan: top, 'Execution Time': ms }] = row['QUERY PLAN'] as Explained;
    const scans = scansOf(top);
    const wholes = await readWholes(sql);
    return {
      scans: [
        ...new Set(scans.filter((scan) => !isOfEmptyPart(scan, wholes)).map((scan) => nameOf(scan, wholes))),
      ],
      rows: scans.reduce((sum, scan) => sum + rowsOf(scan), 0),
      buffers: number(top, 'Shared Hit Blocks') + number(top, 'Shared Read Blocks'),
      ms,
    };
  };
  return {
    sql,
    close: () => sql.end(),
    async explain(run, planFor) {
      sent = [];
      await run();
      const last = sent.at(-1);
      if (last === undefined) throw new Error('nothing was sent');
      return explainSent(last, planFor);
    },
    async explainAll(run, planFor) {
      sent = [];
      await sql.unsafe('BEGIN');
      await run();
      const all = sent.slice(1);
      await sql.unsafe('ROLLBACK');
      const plans = [];
      for (const one of all) {
        await sql.unsafe('BEGIN');
        plans.push({ ...(await explainSent(one, planFor)), text: one.text });
        await sql.unsafe('ROLLBACK');
      }
      return plans;
    },
  };
}

function literal(value: unknown): string {
  if (value === null) return 'NULL';
  const plain = value instanceof Date ? value.toISOString() : value;
  return `'${String(Array.isArray(plain) ? `{${plain}}` : plain).replaceAll("'", "''")}'`;
}

/** The nodes that read tables or indexes. */
function scansOf(node: Node): Node[] {
  const below = (node.Plans ?? []).flatMap(scansOf);
  return 'Relation Name' in node ? [node, ...below] : below;
}

/** The partitioned table or index of each partition. */
async function readWholes(sql: Planner['sql']): Promise<Map<unknown, string>> {
  const rows = await sql<{ part: string; whole: string }[]>`
    SELECT c.relname AS part, p.relname AS whole FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent`;
  return new Map(rows.map(({ part, whole }) => [part, whole]));
}

/** Planned for these parameters, a partition without a page is read whole; so are the names of submissions if there are none. */
function isOfEmptyPart(node: Node, wholes: ReadonlyMap<unknown, string>): boolean {
  const pages = number(node, 'Shared Hit Blocks') + number(node, 'Shared Read Blocks');
  const table = node['Relation Name'];
  return (
    node['Node Type'] === 'Seq Scan' && (wholes.has(table) || table === 'submission_name') && pages === 0
  );
}

function nameOf(node: Node, wholes: ReadonlyMap<unknown, string>): string {
  const name = node['Index Name'] ?? node['Relation Name'];
  return `${node['Node Type']} ${wholes.get(name) ?? name}`;
}

/** What it returned and what it looked at in vain, over all its runs. */
function rowsOf(node: Node): number {
  const each =
    number(node, 'Actual Rows') +
    number(node, 'Rows Removed by Filter') +
    number(node, 'Rows Removed by Index Recheck');
  return Math.ceil(each * number(node, 'Actual Loops'));
}

function number(node: Node, name: string): number {
  return typeof node[name] === 'number' ? node[name] : 0;
}
