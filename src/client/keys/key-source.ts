/** Where the API key of a call comes from. */
export type KeySource = {
  /** Undefined for a call without a key. */
  get: (signal: AbortSignal | undefined) => Promise<string | undefined>;
  /** Whether the service, which has rejected this key, may accept the next one. */
  replace: (rejected: string) => boolean;
};

/** An API key that never changes. */
export function fixedKey(apiKey: string | undefined): KeySource {
  return { get: async () => apiKey, replace: () => false };
}
