/** Checks what a request says of its statement, beside the metadata. */
import {
  type CreateAttestationRequest,
  StatementForm,
  ValidationMode,
} from '../../../../gen/attestation/v1/attestations_pb.js';
import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import { jcs } from '../../../proof/bytes/jcs.js';
import type { Subject } from '../../../proof/statement/public-statement.js';
import { MAX_PROBLEMS, type Problem } from '../../../protocol/problem.js';
import { ApiError } from '../../core/errors.js';
import { invalidRequest } from '../../json/problems.js';
import type { SchemaRegistry } from '../../schema/registry.js';
import type { ValidMetadata } from '../metadata.js';

/** What a public statement has that a private one has not; hashes in lower-case hex. */
export type PublicParts = {
  readonly predicateType: string;
  /** The JCS of the metadata without its member `schema`. */
  readonly predicate: string;
  readonly subjects: readonly Subject[];
};

/** The members of a request that its statement depends on. */
export type StatementRequest = Pick<
  CreateAttestationRequest,
  'artifact' | 'validation' | 'statement' | 'subjects'
>;

/**
 * Checks the request of a public statement; undefined if the statement is to be private. Throws `request.invalid`, and
 * `statement.no_predicate_type` if the schema has none.
 */
export function checkStatement(
  schemas: SchemaRegistry,
  request: StatementRequest,
  metadata: ValidMetadata,
): PublicParts | undefined {
  if (request.statement !== StatementForm.PUBLIC) {
    if (request.subjects.length === 0) return undefined;
    throw invalid('/subjects', 'goes with "statement": "public" only');
  }
  if (request.validation === ValidationMode.LENIENT)
    throw invalid('/validation', 'must be strict with "statement": "public"');
  const { schema } = metadata;
  const predicateType = schemas.get(schema)?.predicateType;
  if (predicateType === undefined) throw noPredicateType(schemas, schema);
  const problems = findRepeatedNames(request);
  if (problems.length > 0) throw invalidRequest(problems);
  const subjects = request.subjects.map(({ name, sha256 }) => ({
    sha256: sha256.toLowerCase(),
    ...(name !== undefined && { name }),
  }));
  return { predicateType, predicate: predicateOf(metadata), subjects };
}

/** The metadata's JCS without its member `schema`; cut out of the JCS of all if nothing else there is spelled the same. */
function predicateOf({ canonical, schema, value }: ValidMetadata): string {
  const member = `"schema":${JSON.stringify(schema)}`;
  const at = canonical.indexOf(member);
  if (at !== canonical.lastIndexOf(member)) {
    const { schema: _, ...predicate } = value;
    return jcs(predicate);
  }
  const end = at + member.length;
  // With the comma behind it, or, of the last one, before it.
  if (canonical[end] === ',') return canonical.slice(0, at) + canonical.slice(end + 1);
  return canonical.slice(0, canonical[at - 1] === ',' ? at - 1 : at) + canonical.slice(end);
}

/** Names of subjects are unique within a statement (in-toto Statement v1). */
function findRepeatedNames({ artifact, subjects }: StatementRequest): Problem[] {
  const seen = new Set([artifact?.name]);
  const problems: Problem[] = [];
  for (const [i, { name }] of subjects.entries()) {
    if (name === undefined) continue;
    if (seen.has(name) && problems.length < MAX_PROBLEMS)
      problems.push({ path: `/subjects/${i}/name`, message: 'is the name of an earlier subject' });
    seen.add(name);
  }
  return problems;
}

function noPredicateType(schemas: SchemaRegistry, schema: string): ApiError {
  const known = [...schemas].filter(([, one]) => one.predicateType !== undefined).map(([name]) => name);
  const message = `the metadata schema ${schema} has no predicate type, so its statements are private; details.known lists the schemas that have one`;
  return new ApiError(ErrorCode.STATEMENT_NO_PREDICATE_TYPE, message, { schema, known });
}

function invalid(path: string, message: string): ApiError {
  return invalidRequest([{ path, message }]);
}
