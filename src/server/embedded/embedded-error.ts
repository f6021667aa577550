export type EmbeddedErrorCode =
  | 'data_dir_in_use'
  | 'data_dir_unusable'
  | 'binaries_unusable'
  | 'not_installed'
  | 'user_missing'
  | 'version_mismatch'
  | 'port_taken'
  | 'start_failed';

/**
 * A local server or its data directory cannot be used. The message is for the operator: it names the fault
 * and the remedy, and contains no secret.
 */
export class EmbeddedError extends Error {
  override readonly name = 'EmbeddedError';

  constructor(
    readonly code: EmbeddedErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
