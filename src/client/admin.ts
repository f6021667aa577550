/** Calls of the admin API, which has no typed client of its own: its descriptors say all that is needed. */
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { callUnary } from './call.js';
import { createCaller } from './caller.js';

/** A call of the admin API; throws AttestationError. */
export type AdminCall = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
) => Promise<MessageShape<O>>;

/** The way to call the admin API of a service with its operator's token. */
export function createAdminCall({ baseUrl, adminToken }: { baseUrl: string; adminToken: string }): AdminCall {
  const caller = createCaller({ baseUrl, apiKey: adminToken });
  return (method, request) => callUnary(caller, method, request);
}
