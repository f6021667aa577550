const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;
const CHARSET = /;[ \t]*charset[ \t]*=[ \t]*"?([^";\s]*)"?/i;

/** Whether a `Content-Type` is JSON in UTF-8; parameters other than the charset do not matter. */
export function isJsonType(contentType: string): boolean {
  if (contentType === 'application/json') return true;
  if (!JSON_TYPE.test(contentType)) return false;
  const charset = CHARSET.exec(contentType)?.[1];
  return charset === undefined || /^utf-?8$/i.test(charset);
}
