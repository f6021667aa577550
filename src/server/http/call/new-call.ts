import { ErrorCode } from '../../../../gen/attestation/v1/errors_pb.js';
import type { Call } from '../../core/call.js';
import { ApiError } from '../../core/errors.js';
import { claimedKey } from '../../core/principal.js';
import type { NodeResponse, RequestRecord } from '../socket/requests.js';

/** Makes the call of a request, not yet authenticated. */
export function newCall(
  { method, rules }: Pick<Call, 'method' | 'rules'>,
  {
    requestId,
    peer,
    startedMs,
    req: { headers },
  }: Pick<RequestRecord, 'requestId' | 'peer' | 'startedMs' | 'req'>,
  signal: Call['signal'],
): Call {
  return {
    method,
    rules,
    requestId,
    startedMs,
    header: (name) => {
      const value = headers[name];
      return Array.isArray(value) ? value.join(', ') : value;
    },
    signal,
    principal: undefined,
    session: undefined,
    peer,
    idempotencyKey: undefined,
    rateStates: [],
    tally: { room: 'any', taken: 0, due: undefined },
    bodyBytes: 0,
    nextItem: undefined,
    hasChanged: undefined,
    pendingStatus: undefined,
    span: undefined,
    responseHeaders: new Map(),
  };
}

/** A signal, made on first use, that aborts if the connection closes before the response ends. */
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

const VISIBLE_ASCII = /^[\x21-\x7e]{1,255}$/;

/** Checks `Idempotency-Key` where the method honours it, and sets it on the call. */
export function readIdempotencyKey(call: Call): void {
  const key = findIdempotencyKey(call);
  if (key === undefined) return;
  if (!isIdempotencyKey(key)) throw invalidKey('Idempotency-Key');
  call.idempotencyKey = claimedKey(call.principal, key);
}

/** Whether a text may be an idempotency key. */
export function isIdempotencyKey(text: string): boolean {
  return VISIBLE_ASCII.test(text);
}

/** The error `idempotency.key_invalid`. `name`: of the header or member that holds the key. */
export function invalidKey(name: string): ApiError {
  return new ApiError(ErrorCode.IDEMPOTENCY_KEY_INVALID, `${name} must be 1 to 255 visible ASCII characters`);
}

/** The unchecked key of a call. Undefined if it has none or its method ignores it. */
export function findIdempotencyKey({ rules, header }: Call): string | undefined {
  return rules.idempotentByKey ? keyIn(header) : undefined;
}

/** The longest key of a batch: `#999` follows in the key of its last item. */
const MAX_BATCH_KEY_LENGTH = 251;

/** The checked `Idempotency-Key` of a batch, undefined if it has none. Items without a key have one made of it. */
export function readBatchKey({ header }: Call): string | undefined {
  const key = keyIn(header);
  if (key === undefined || (isIdempotencyKey(key) && key.length <= MAX_BATCH_KEY_LENGTH)) return key;
  const message = `Idempotency-Key must be 1 to ${MAX_BATCH_KEY_LENGTH} visible ASCII characters in a batch`;
  throw new ApiError(ErrorCode.IDEMPOTENCY_KEY_INVALID, message);
}

function keyIn(header: Call['header']): string | undefined {
  const text = header('idempotency-key');
  return text === undefined ? undefined : unquote(text.trim());
}

/** The value of a quoted string (RFC 9651, section 3.3.3), so that `"a"` and `a` are the same key; else the text. */
function unquote(text: string): string {
  if (text.length < 2 || !text.startsWith('"') || !text.endsWith('"')) return text;
  return text.slice(1, -1).replace(/\\(["\\])/g, '$1');
}
