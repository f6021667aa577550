/**
 * Submissions have numbers in place of the names of their project and schema (`submission_name`); those from before 0015 have
 * the names. `named_submission` shows the names of both. This is for the reads of most requests, of `submission s`: a page
 * with the view takes Postgres a sixth longer.
 */

/** SQL that joins the names `n` to submissions `s`, row by row: a hash of all names takes 3 µs a row of few. */
export const WITH_NAMES = `
  LEFT JOIN LATERAL (
    SELECT n.project_id, n.schema FROM submission_name n WHERE n.number = s.schema_number LIMIT 1) n ON true`;

/** SQL of the names of a submission's project and schema, {@link WITH_NAMES}. */
export const PROJECT_OF = 'coalesce(s.project_id, n.project_id)';
export const SCHEMA_OF = 'coalesce(s.schema, n.schema)';

/** SQL of the keys of indexes: of a submission's project, and of its schema in that project. */
const KEY_OF = {
  project: 'coalesce(s.project_number, hashtext(s.project_id))',
  schema: "coalesce(s.schema_number, hashtext(s.project_id || E'\\n' || s.schema))",
};

/** SQL of a project, and of a schema and a build unless they are left out. */
export type Names = { project: string; schema?: string | undefined; build?: string | undefined };

/** SQL of the hashes of a project, and of its schema. */
const hashOf = ({ project, schema }: Names): string =>
  schema === undefined ? `hashtext(${project})` : `hashtext(${project} || E'\\n' || ${schema})`;

/** The key of the index `submission_*_leaves` of the names, and its value. Others may have the same. */
export function keyOf({ project, schema, build }: Names): { key: string; value: string } {
  const key = schema === undefined ? KEY_OF.project : KEY_OF.schema;
  const value = hashOf({ project, schema });
  if (build === undefined) return { key, value };
  return { key: `hashtextextended(s.build, ${key})`, value: `hashtextextended(${build}, ${value})` };
}

/** The condition that a submission has the names. A hash is not enough: another name may have it, and the number. */
export function hasNames({ project, schema, build }: Names): string {
  const numberOf = (names: Names) => `(
    SELECT n.number FROM submission_name n
    WHERE n.number = ${hashOf(names)} AND n.project_id = ${project} AND n.schema = ${names.schema ?? "''"})`;
  const conditions = [
    `(s.project_id = ${project} OR s.project_number = ${numberOf({ project })})`,
    ...(schema === undefined
      ? []
      : [`(s.schema = ${schema} OR s.schema_number = ${numberOf({ project, schema })})`]),
    ...(build === undefined ? [] : [`s.build = ${build}`]),
  ];
  return conditions.join(' AND ');
}
