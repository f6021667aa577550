/**
 * Imported by tap and by each of its test processes before anything else: keeps tap's hooks for TypeScript, mocks and
 * coverage out, which the compiled tests do not need. Each hook is a thread that all modules of a process pass through,
 * and one of them is passed on to every Node process that a test starts. It also ends test processes.
 */
import module from 'node:module';

// Not in what a test starts: tsx needs its hook.
if (process.env.TAP_CHILD_ID !== undefined) {
  process.env.NODE_OPTIONS = (process.env.NODE_OPTIONS ?? '')
    .replace(`--import=${import.meta.url}`, '')
    .trim();
  // Node 20 frees the handles of a process that ends by itself, and loops for ever over a request of a socket whose peer is gone.
  process.once('beforeExit', () => process.once('exit', () => process.exit()));
}

Object.assign(module, { register: () => {} });
// What tap would have every started process inherit; a state that exists is not set up again.
Object.defineProperty(globalThis, Symbol.for('process-on-spawn@*:singletonId'), {
  value: { version: 1, listeners: [], unwrap: () => {} },
});
