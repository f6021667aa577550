/** Returns whether `error` is a system error with one of these codes, such as `ENOENT`. */
export function hasErrno(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}
