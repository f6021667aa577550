import { type DescMessage, getOption } from '@bufbuild/protobuf';
import { default_value } from '../../gen/attestation/options/v1/options_pb.js';

/** How many items a page holds at most when the request of a list leaves `limit` out: what its proto says. */
export function defaultLimit(request: DescMessage): number {
  const field = request.fields.find(({ name }) => name === 'limit');
  const limit = field === undefined ? 0 : Number(getOption(field, default_value));
  if (!(limit > 0)) throw new Error(`${request.typeName} has no default for limit`);
  return limit;
}
