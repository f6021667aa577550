import { FormatError } from '../../../proof/bytes/format-error.js';

/** An input of the page. `progress` is the part that is done, from 0 to 1; `detail` says it in words. */
export type Loadable<T> =
  | { readonly state: 'empty' }
  | { readonly state: 'loading'; readonly name: string; readonly progress?: number; readonly detail?: string }
  | { readonly state: 'problem'; readonly message: string }
  | { readonly state: 'ready'; readonly value: T };

/** How the reading of an input is ended, and says how far it is. */
export type Report = {
  readonly signal: AbortSignal;
  readonly progress: (part: number, detail?: string) => void;
};

export const EMPTY = { state: 'empty' } as const;

/** The state after an attempt has thrown; `otherwise` is the sentence for errors without one for people. */
export function problemState(error: unknown, otherwise: string): Loadable<never> {
  return { state: 'problem', message: error instanceof FormatError ? error.message : otherwise };
}
