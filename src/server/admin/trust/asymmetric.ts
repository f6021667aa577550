/** Algorithms of tokens: asymmetric only, because with another, who can verify a token can make one. */
export const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];

/** How far the clocks of issuer and service may differ. */
export const CLOCK_TOLERANCE_SECONDS = 30;
