/** Which check of a delivery failed. */
export type WebhookVerificationCode =
  /** Neither `Service-Signature` nor the headers of Standard Webhooks are there. */
  | 'header.missing'
  /** A signature header cannot be read. */
  | 'header.malformed'
  /** No signature is by a given secret over this body. */
  | 'signature.mismatch'
  /** It was signed longer ago than is tolerated: it may be a replay. */
  | 'timestamp.too_old'
  /** It was signed at a time to come: one of the clocks is wrong. */
  | 'timestamp.in_future'
  /** It is by the sender, and no event. */
  | 'body.invalid';

/** A delivery that must not be believed. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
  readonly code: WebhookVerificationCode;

  constructor(code: WebhookVerificationCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
