/** The public classes of errors of requests to witnesses. */
export type WitnessErrorClass = 'unreachable' | 'rejected' | 'invalid' | 'contradiction' | 'other';

/** Why a request to a witness failed: one line for operators, and its class for everybody. */
export type WitnessError = { readonly reason: string; readonly errorClass: WitnessErrorClass };
