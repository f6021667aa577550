import { FormatError } from '../../../proof/bytes/format-error.js';

/** An input of the page. `progress` is the part that is done, from 0 to 1. */
export type Loadable<T> =
  | { readonly state: 'empty' }
  | { readonly state: 'loading'; readonly name: string; readonly progress?: number }
  | { readonly state: 'problem'; readonly message: string }
  | { readonly state: 'ready'; readonly value: T };

export const EMPTY = { state: 'empty' } as const;

/** The state after an attempt has thrown; `otherwise` is the sentence for errors without one for people. */
export function problemState(error: unknown, otherwise: string): Loadable<never> {
  return { state: 'problem', message: error instanceof FormatError ? error.message : otherwise };
}
