/** The outcome of a message: `retry` redelivers it after `delayMs`; `giveUp` drops work that can never succeed. */
export type Outcome =
  | { type: 'done' }
  | { type: 'retry'; delayMs: number }
  | { type: 'giveUp'; reason: string };

export const DONE: Outcome = { type: 'done' };

/** The outcome that redelivers the message after `delayMs`. */
export function retryAfter(delayMs: number): Outcome {
  return { type: 'retry', delayMs: Math.max(1, Math.ceil(delayMs)) };
}
