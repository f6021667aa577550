/** Exit code of each verdict of a verification. */
export const EXIT_CODES = { verified: 0, not_verified: 1, could_not_check: 2 } as const;
