/** Fees of EIP-1559 transactions, in wei per gas. */

/** `maxFeePerGas` bounds base fee and tip together. */
export type Fees = { readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint };

/** The fees of a transaction now: the base fee of the newest block, and the tip that the node suggests. */
export type FeeMarket = { readonly baseFee: bigint; readonly tip: bigint };

/** The fees of a first transaction: twice the base fee, which six full blocks do not exceed, and the tip. Undefined if the base fee is above the cap. */
export function firstFees({ baseFee, tip }: FeeMarket, cap: bigint): Fees | undefined {
  if (baseFee > cap) return undefined;
  const maxFeePerGas = min(cap, 2n * baseFee + tip);
  return { maxFeePerGas, maxPriorityFeePerGas: min(tip, maxFeePerGas) };
}

/**
 * The fees of a transaction that replaces another one: both are at least an eighth higher, as nodes demand (at least a
 * tenth). Undefined if that, or the base fee, is above the cap.
 */
export function replacementFees(previous: Fees, { baseFee, tip }: FeeMarket, cap: bigint): Fees | undefined {
  const maxPriorityFeePerGas = max(raise(previous.maxPriorityFeePerGas), tip);
  const least = max(raise(previous.maxFeePerGas), maxPriorityFeePerGas);
  if (least > cap || baseFee > cap) return undefined;
  return { maxFeePerGas: min(cap, max(least, 2n * baseFee + maxPriorityFeePerGas)), maxPriorityFeePerGas };
}

/** `12.5` of 12,500,000,000 wei. */
export function formatGwei(wei: bigint): string {
  return formatUnits(wei, 9);
}

/** The whole units of the chain's currency, such as `0.05` of 50,000,000,000,000,000 wei. */
export function formatEther(wei: bigint): string {
  return formatUnits(wei, 18);
}

function formatUnits(value: bigint, decimals: number): string {
  const digits = value.toString().padStart(decimals + 1, '0');
  const fraction = digits.slice(-decimals).replace(/0+$/, '');
  return fraction === '' ? digits.slice(0, -decimals) : `${digits.slice(0, -decimals)}.${fraction}`;
}

function raise(fee: bigint): bigint {
  return fee + fee / 8n + 1n;
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
