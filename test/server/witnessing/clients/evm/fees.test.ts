import * as fc from 'fast-check';
import t from 'tap';
import {
  firstFees,
  formatEther,
  formatGwei,
  replacementFees,
} from '../../../../../src/server/witnessing/clients/evm/fees.js';
import { FUZZ } from '../../../../support/fuzz.js';

const wei = fc.bigInt({ min: 0n, max: 10n ** 14n });
const markets = fc.record({ baseFee: wei, tip: wei });

t.test('fees cover the base fee and never exceed the cap', async (t) => {
  fc.assert(
    fc.property(markets, wei, (market, cap) => {
      const fees = firstFees(market, cap);
      if (fees === undefined) return market.baseFee > cap;
      const { maxFeePerGas, maxPriorityFeePerGas } = fees;
      return maxFeePerGas >= market.baseFee && maxFeePerGas <= cap && maxPriorityFeePerGas <= maxFeePerGas;
    }),
    { seed: FUZZ.seed, numRuns: 20 * FUZZ.cases },
  );
  t.strictSame(firstFees({ baseFee: 10n, tip: 3n }, 100n), { maxFeePerGas: 23n, maxPriorityFeePerGas: 3n });
});

t.test('each replacement raises both fees by a tenth or more, until the cap ends it', async (t) => {
  fc.assert(
    fc.property(markets, fc.array(markets, { maxLength: 200 }), wei, (first, later, cap) => {
      let fees = firstFees(first, cap);
      for (const market of later) {
        const next = fees && replacementFees(fees, market, cap);
        if (fees === undefined || next === undefined) continue;
        for (const name of ['maxFeePerGas', 'maxPriorityFeePerGas'] as const) {
          if (next[name] * 10n < fees[name] * 11n || next[name] > cap) return false;
        }
        if (next.maxFeePerGas < market.baseFee || next.maxPriorityFeePerGas > next.maxFeePerGas) return false;
        fees = next;
      }
      return true;
    }),
    { seed: FUZZ.seed, numRuns: 2 * FUZZ.cases },
  );
  let fees = firstFees({ baseFee: 1n, tip: 1n }, 10n ** 15n);
  let replacements = 0;
  for (; fees !== undefined; replacements++)
    fees = replacementFees(fees, { baseFee: 1n, tip: 1n }, 10n ** 15n);
  t.ok(replacements < 400, `${replacements} replacements from 1 wei to a million gwei`);
});

t.test('amounts have no insignificant digits', async (t) => {
  t.strictSame([0n, 1n, 1_500_000_000n, 80_000_000_000n].map(formatGwei), ['0', '0.000000001', '1.5', '80']);
  t.strictSame([0n, 10n ** 18n, 123n * 10n ** 13n].map(formatEther), ['0', '1', '0.00123']);
});
