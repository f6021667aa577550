import type { DescMethodUnary } from '@bufbuild/protobuf';
import type { Call } from '../../core/call.js';
import type { NodeResponse, RequestRecord } from '../socket/requests.js';

/** The call that a request makes, of which nothing is known yet but the method. */
export function newCall(
  method: DescMethodUnary,
  { requestId, req: { headers } }: Pick<RequestRecord, 'requestId' | 'req'>,
  signal: Call['signal'],
): Call {
  return {
    method,
    requestId,
    header: (name) => {
      const value = headers[name];
      return Array.isArray(value) ? value.join(', ') : value;
    },
    signal,
    principal: undefined,
    idempotencyKey: undefined,
    rateStates: [],
    isCounted: false,
    isReplayOnly: false,
    responseHeaders: new Map(),
  };
}

/** A signal, made when first asked for, that aborts when the connection ends before the answer does. */
export function closeSignal(res: NodeResponse): Call['signal'] {
  let signal: AbortSignal | undefined;
  return () => {
    signal ??= watchClose(res);
    return signal;
  };
}

function watchClose(res: NodeResponse): AbortSignal {
  const controller = new AbortController();
  const onClose = () => {
    if (!res.writableEnded) controller.abort();
  };
  if (res.destroyed) onClose();
  else res.once('close', onClose);
  return controller.signal;
}
