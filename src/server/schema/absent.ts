/** Whether a JSON value has no content: a text, an array or an object with nothing in it. */
export function isEmpty(value: unknown): boolean {
  return value === '' || (typeof value === 'object' && value !== null && Object.keys(value).length === 0);
}

/** Whether a member with this value counts as not given by in-toto's parsing rules: null does, and empty. */
export function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || isEmpty(value);
}
