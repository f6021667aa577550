import type { DescMethodUnary } from '@bufbuild/protobuf';
import type { Call } from '../../call.js';
import type { NodeRequest, NodeResponse } from '../requests.js';

/** The call that a REST request makes. Its signal aborts when the connection ends before the answer does. */
export function restCall(
  method: DescMethodUnary,
  requestId: string,
  { headers }: NodeRequest,
  res: NodeResponse,
): Call {
  let signal: AbortSignal | undefined;
  return {
    method,
    requestId,
    header: (name) => {
      const value = headers[name];
      return Array.isArray(value) ? value.join(', ') : value;
    },
    signal: () => {
      signal ??= closeSignal(res);
      return signal;
    },
    principal: undefined,
    idempotencyKey: undefined,
    rateStates: [],
    responseHeaders: new Map(),
  };
}

function closeSignal(res: NodeResponse): AbortSignal {
  const controller = new AbortController();
  const onClose = () => {
    if (!res.writableEnded) controller.abort();
  };
  if (res.destroyed) onClose();
  else res.once('close', onClose);
  return controller.signal;
}
