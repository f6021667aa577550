/** Calls of the admin API by method descriptor: it has no typed client of its own. */
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { callUnary } from './call.js';
import { createCaller } from './caller.js';

/** Calls a method of the admin API. Throws AttestationError. */
export type AdminCall = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
) => Promise<MessageShape<O>>;

/** Creates the function that calls a service's admin API with the operator's token. */
export function createAdminCall({ baseUrl, adminToken }: { baseUrl: string; adminToken: string }): AdminCall {
  const caller = createCaller({ baseUrl, apiKey: adminToken });
  return (method, request) => callUnary(caller, method, request);
}
