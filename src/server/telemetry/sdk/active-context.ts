import { AsyncLocalStorage } from 'node:async_hooks';
import { type Context, type ContextManager, ROOT_CONTEXT, trace } from '@opentelemetry/api';

/**
 * Follows the contexts of recorded spans through asynchronous work, and no others. A context is gone once its span has
 * ended, so that a connection or timer that was made in it does not keep later work in an old trace.
 */
export function recordedContexts(): ContextManager {
  const storage = new AsyncLocalStorage<Context>();
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
  return manager;
}
