/** A value is invalid. The message, if not empty, gives the reason and quotes no secret. */
export class InvalidValue extends Error {
  override readonly name = 'InvalidValue';
}
