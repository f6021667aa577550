/** What a test came to, from best to worst: `skipped` has not passed, `warned` passed at another attempt only. */
const OUTCOMES = ['passed', 'skipped', 'warned', 'failed'] as const;

export type Outcome = (typeof OUTCOMES)[number];

/** The worse of two outcomes. */
export function worse(a: Outcome, b: Outcome): Outcome {
  return OUTCOMES.indexOf(a) < OUTCOMES.indexOf(b) ? b : a;
}
