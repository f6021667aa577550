import { type DescMethodUnary, getOption } from '@bufbuild/protobuf';
import {
  Access,
  type MethodRules,
  rules as rulesOption,
} from '../../../../gen/attestation/options/v1/options_pb.js';

const known = new WeakMap<DescMethodUnary, MethodRules>();

/**
 * What the proto says about who may call a method and what it costs. Throws when an API key may call it without any
 * scope: that is a forgotten option, not a public method.
 */
export function methodRules(method: DescMethodUnary): MethodRules {
  const cached = known.get(method);
  if (cached !== undefined) return cached;
  const read = getOption(method, rulesOption);
  if (read.access === Access.UNSPECIFIED && read.scope === '') {
    throw new Error(`${method.parent.typeName}.${method.name} names no scope`);
  }
  known.set(method, read);
  return read;
}
