/** What `breakNext` and `holdNext` of the proxy wait for. */

/** Tells whether it is sent; asked of all that clients send, in order. */
export type Matching = (sent: Buffer) => boolean;

/** Matches the statement. A process that has just been started sends it with its text. */
export function statement(text: string): Matching {
  return (sent) => sent.includes(text);
}

/** Matches the COMMIT of the transaction that the text is in. For one use. */
export function commitOf(text: string): Matching {
  let seen = false;
  return (sent) => {
    seen ||= sent.includes(text);
    return seen && sent.includes('COMMIT');
  };
}
