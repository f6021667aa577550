import { type DescField, type DescMessage, getOption, hasOption, type Message } from '@bufbuild/protobuf';
import type { Path } from '@bufbuild/protobuf/reflect';
import { createValidator, type Violation } from '@bufbuild/protovalidate';
import { form } from '../../../../gen/attestation/options/v1/options_pb.js';
import { jsonPointer } from '../../../protocol/json-pointer.js';
import { MAX_PROBLEMS, type Problem } from '../../../protocol/problem.js';
import { admittedNames } from '../../json/field-rules.js';
import { invalidRequest } from '../../json/problems.js';

/**
 * Makes the check of messages against the `buf.validate` rules of their protos. It throws `request.invalid` with
 * every broken rule at the JSON pointer of its field; rules that cannot be evaluated are an ordinary Error.
 */
export function createValidate(): (desc: DescMessage, message: Message) => void {
  const validator = createValidator({ regexMatch });
  return (desc, message) => {
    const { kind, error, violations } = validator.validate(desc, message);
    if (kind === 'error') throw error;
    if (kind === 'invalid') {
      const more = Math.max(0, violations.length - MAX_PROBLEMS);
      throw invalidRequest(Object.assign(violations.slice(0, MAX_PROBLEMS).map(asProblem), { more }));
    }
  };
}

/** Patterns compiled by JavaScript's engine: the library's takes 15 µs for a digest, this one 0.1. */
const PATTERNS = new Map<string, RegExp>();

function regexMatch(pattern: string, against: string): boolean {
  let compiled = PATTERNS.get(pattern);
  if (compiled === undefined) {
    compiled = new RegExp(pattern, 'u');
    PATTERNS.set(pattern, compiled);
  }
  return compiled.test(against);
}

/** Ours read as a predicate after the pointer: "/limit must be …", "/title is required". */
const WORDING: readonly [theirs: RegExp, ours: string][] = [
  [/^must be at least 1 characters$|^must contain at least 1 item\(s\)$/, 'must not be empty'],
  [/^repeated value must contain unique items$/, 'must not hold an item twice'],
  [/^one of (.+) must be set$/, 'must have one of $1'],
  [/^value /, ''],
];

function asProblem({ field, message, ruleId }: Violation): Problem {
  const last = field.findLast((step) => step.kind === 'field');
  return {
    path: jsonPointer(stepsOf(field)),
    message: (last && findOwnWords(last, ruleId)) ?? inOurWords(message),
  };
}

/** The constraint of a field as the proto words it. */
function findOwnWords(field: DescField, ruleId: string): string | undefined {
  if (field.enum !== undefined && ruleId.startsWith('enum.')) {
    return `must be one of ${admittedNames(field).join(', ')}`;
  }
  return ruleId === 'string.pattern' && hasOption(field, form)
    ? `must be ${getOption(field, form)}`
    : undefined;
}

function inOurWords(message: string): string {
  return WORDING.reduce((text, [theirs, ours]) => text.replace(theirs, ours), message);
}

/** The members that lead to a field; a oneof is none, so a rule of one stands at its message. */
function stepsOf(path: Path): (string | number)[] {
  return path.flatMap((step): (string | number)[] => {
    switch (step.kind) {
      case 'field':
        return [step.name];
      case 'list_sub':
        return [step.index];
      case 'map_sub':
        return [String(step.key)];
      default:
        return [];
    }
  });
}
