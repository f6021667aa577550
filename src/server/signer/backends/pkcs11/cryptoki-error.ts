/** Return values of PKCS#11 functions, with what an operator does about them. */

/** The name of a return value, and a hint. */
const VALUES: ReadonlyMap<number, readonly [name: string, hint: string]> = new Map([
  [0x5, ['CKR_GENERAL_ERROR', 'see the log of the module']],
  [0x6, ['CKR_FUNCTION_FAILED', 'see the log of the module']],
  [0x30, ['CKR_DEVICE_ERROR', 'the device reports a fault']],
  [0x31, ['CKR_DEVICE_MEMORY', 'the device is out of memory: lower "sessions"']],
  [0x32, ['CKR_DEVICE_REMOVED', 'the device is away']],
  [0x54, ['CKR_FUNCTION_NOT_SUPPORTED', 'the module cannot do this']],
  [0x63, ['CKR_KEY_TYPE_INCONSISTENT', 'the key is of another type than its public key']],
  [0x68, ['CKR_KEY_FUNCTION_NOT_PERMITTED', 'the key may not sign: CKA_SIGN is false']],
  [0x70, ['CKR_MECHANISM_INVALID', 'the token cannot sign with this algorithm']],
  [0x82, ['CKR_OBJECT_HANDLE_INVALID', 'the key is gone']],
  [0x60, ['CKR_KEY_HANDLE_INVALID', 'the key is gone']],
  [0xa0, ['CKR_PIN_INCORRECT', 'put the user PIN into pin_file, then restart']],
  [0xa1, ['CKR_PIN_INVALID', 'put the user PIN into pin_file, then restart']],
  [0xa2, ['CKR_PIN_LEN_RANGE', 'put the user PIN into pin_file, then restart']],
  [0xa3, ['CKR_PIN_EXPIRED', 'set a new user PIN on the token']],
  [0xa4, ['CKR_PIN_LOCKED', 'the token is locked: unlock it as its security officer']],
  [0xb0, ['CKR_SESSION_CLOSED', 'the session has ended']],
  [0xb1, ['CKR_SESSION_COUNT', 'the token allows fewer sessions: lower "sessions"']],
  [0xb3, ['CKR_SESSION_HANDLE_INVALID', 'the session has ended']],
  [0xe0, ['CKR_TOKEN_NOT_PRESENT', 'the token is away']],
  [0xe1, ['CKR_TOKEN_NOT_RECOGNIZED', 'the token is away']],
  [0x101, ['CKR_USER_NOT_LOGGED_IN', 'the session has ended']],
  [0x102, ['CKR_USER_PIN_NOT_INITIALIZED', 'set a user PIN on the token']],
  [0x190, ['CKR_CRYPTOKI_NOT_INITIALIZED', 'the module was reset']],
]);

/** What a login rejects for good: each attempt counts, and the token locks after some. */
const PIN_REJECTED = [0xa0, 0xa1, 0xa2, 0xa3, 0xa4];
/** What a new session, with a login, may heal. */
const SESSION_LOST = [0x30, 0x32, 0x60, 0x82, 0xb0, 0xb3, 0xe0, 0xe1, 0x101];

/** A function of a PKCS#11 module that did not return CKR_OK. */
export class CryptokiError extends Error {
  override readonly name = 'CryptokiError';

  constructor(
    call: string,
    readonly rv: number,
  ) {
    const [name, hint] = VALUES.get(rv) ?? [`0x${rv.toString(16)}`, 'see the manual of the module'];
    super(`${call} returned ${name}: ${hint}`);
  }

  get isPinRejected(): boolean {
    return PIN_REJECTED.includes(this.rv);
  }

  get isSessionLost(): boolean {
    return SESSION_LOST.includes(this.rv);
  }
}
