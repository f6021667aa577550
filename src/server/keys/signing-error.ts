/** A key that cannot sign now, or is not held. The message is one line, for operators. */
export class SigningError extends Error {
  override readonly name = 'SigningError';
}

/** No setting names the key: it cannot sign until the process is started with it. */
export class KeyNotHeldError extends SigningError {}
