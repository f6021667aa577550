/** Calls of the admin API by method descriptor: it has no typed client of its own. */
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { callUnary } from './call.js';
import { type ClientOptions, createCaller } from './caller.js';

/** Calls a method of the admin API. Throws AttestationError. */
export type AdminCall = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
) => Promise<MessageShape<O>>;

type AdminOptions = Pick<ClientOptions, 'baseUrl' | 'fetch'> & { readonly adminToken: string };

/** Creates the function that calls a service's admin API with the operator's token. */
export function createAdminCall({ adminToken, ...options }: AdminOptions): AdminCall {
  const caller = createCaller({ ...options, apiKey: adminToken });
  return (method, request) => callUnary(caller, method, request);
}
