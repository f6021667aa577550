/** What a check of `attest doctor` has found; `detail` is one line, of a failure with what to do. */
export type Finding = {
  readonly check: string;
  readonly status: 'ok' | 'warning' | 'failed';
  readonly detail: string;
};

/** A check, and what it has found. Its other members belong to the next checks. */
export type Check = {
  readonly name: string;
  readonly run: (signal: AbortSignal) => Promise<readonly Result[]>;
};

/** A finding of a check. `about` names its subject, such as a witness. */
export type Result = Omit<Finding, 'check'> & { readonly about?: string };

/** Says that all is well. */
export function ok(detail: string, about?: string): Result {
  return { status: 'ok', detail, ...(about !== undefined && { about }) };
}

/** Says what will cause trouble, and does not yet. */
export function warning(detail: string, about?: string): Result {
  return { status: 'warning', detail, ...(about !== undefined && { about }) };
}

/** Says what is wrong. */
export function failed(detail: string, about?: string): Result {
  return { status: 'failed', detail, ...(about !== undefined && { about }) };
}

/** Runs a check; what it throws is a failure. */
export async function runCheck({ name, run }: Check, signal: AbortSignal): Promise<Finding[]> {
  const results = await run(signal).catch((error: unknown) => [failed(oneLine(error))]);
  return results.map(({ about, ...result }) => ({
    check: about === undefined ? name : `${name} ${about}`,
    ...result,
  }));
}

function oneLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\s*\n\s*/g, '; ');
}
