/** What became of a request to a witness, without anything that only its operator may know. */
export type WitnessErrorClass = 'unreachable' | 'rejected' | 'invalid' | 'contradiction' | 'other';

/** Why a request to a witness failed: one line for operators, and its class for everybody. */
export type WitnessError = { readonly reason: string; readonly errorClass: WitnessErrorClass };
