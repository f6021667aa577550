/** Unwraps the AggregateError of a connect that tried several addresses, whose own message is empty: its first error. */
export function firstError(error: unknown): unknown {
  return error instanceof AggregateError ? error.errors[0] : error;
}
