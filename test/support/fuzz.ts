import { isLong } from './long.js';

/** How much the fuzz tests try, and with which seed: `FUZZ_SEED` and `FUZZ_CASES` change it for one run. */
export const FUZZ = {
  seed: Number(process.env.FUZZ_SEED ?? 20_260_102),
  /** For each operation. */
  cases: Number(process.env.FUZZ_CASES ?? (isLong ? 60 : 15)),
};
