/** True when `error` is a system call's error with this code, such as `ENOENT`. */
export function hasErrno(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}
