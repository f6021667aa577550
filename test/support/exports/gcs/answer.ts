/** Answers of Google's JSON APIs. */
export type GcsAnswer = { status: number; headers: Record<string, string>; body: string };

/** An answer that is the bytes of an object. */
export type MediaAnswer = Omit<GcsAnswer, 'body'> & { body: string | Uint8Array };

/** An answer of JSON. */
export function json(status: number, value: unknown, headers: Record<string, string> = {}): GcsAnswer {
  const type = { 'content-type': 'application/json; charset=UTF-8' };
  return { status, headers: { ...type, ...headers }, body: JSON.stringify(value) };
}

/** An error as the JSON API and IAM write it. */
export function failed(status: number, reason: string, message: string): GcsAnswer {
  const errors = [{ message, domain: 'global', reason }];
  return json(status, { error: { code: status, message, errors, status: reason } });
}
