export type Alert = {
  name: string;
  /** In PromQL. */
  expr: string;
  /** For how long `expr` holds before it fires; at once if undefined. */
  for?: string;
  /** `page` wakes somebody; `ticket` waits for the next working day. */
  severity: 'page' | 'ticket';
  /** What is wrong, in a few words. */
  summary: string;
  /** What to do, in Markdown whose links are relative to docs/. */
  action: string;
};

export const ONE_DAY_SECONDS = 86_400;

/** The seconds until the first of some times, by labels. */
export function untilFirst(times: string, labels: string): string {
  return `min by (${labels}) (${times}) - time()`;
}
