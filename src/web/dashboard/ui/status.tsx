/** How a status looks: good, under way, bad, or neither. */
export type Tone = 'good' | 'wait' | 'bad' | 'plain';

/** A status in a word; its colour repeats what the word says. */
export function Status({ tone, children }: { tone: Tone; children: string }) {
  return <span class={`status ${tone}`}>{children}</span>;
}
