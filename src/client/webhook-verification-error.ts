/** Which check of a delivery failed. */
export type WebhookVerificationCode =
  /** The request has neither `Service-Signature` nor the headers of Standard Webhooks. */
  | 'header.missing'
  /** A signature header is malformed. */
  | 'header.malformed'
  /** No signature matches a given secret and this body. */
  | 'signature.mismatch'
  /** The signature is older than the tolerance: the delivery may be a replay. */
  | 'timestamp.too_old'
  /** The signature's time is in the future: one of the clocks is wrong. */
  | 'timestamp.in_future'
  /** The signature is valid, but the body is not an event. */
  | 'body.invalid';

/** A webhook delivery that fails verification. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
  readonly code: WebhookVerificationCode;

  constructor(code: WebhookVerificationCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
