/** What a handler made of a message. `retry` comes back after `delayMs`; `giveUp` is for work that can never be done. */
export type Outcome =
  | { type: 'done' }
  | { type: 'retry'; delayMs: number }
  | { type: 'giveUp'; reason: string };

export const DONE: Outcome = { type: 'done' };

/** The outcome that has the message come back after `delayMs`. */
export function retryAfter(delayMs: number): Outcome {
  return { type: 'retry', delayMs: Math.max(1, Math.ceil(delayMs)) };
}
