/** Texts that differ in a few values only: constant bytes, and gaps that the values are copied into. */

/** A text with gaps: a piece of it precedes each gap, and the last piece follows the last. */
export type TextTemplate = {
  readonly pieces: readonly Uint8Array[];
  /** The pieces as text. */
  readonly texts: readonly string[];
  /** Which value each gap takes. */
  readonly gaps: readonly number[];
  /** The sum of the pieces' lengths. */
  readonly bytes: number;
};

/**
 * Makes the template of the texts that `render` makes: renders a sample and cuts the text at the sample's values, wherever
 * they are in it. So the renderer of one text stays the only place that knows its form. An empty value has no gap.
 *
 * @param valuesOf the values of a sample as they are spelled in its text, in an order of the caller's
 * @param samples two whose values all differ, or are both empty: the template of the first must write the second,
 *   or this throws. No value of the first may be a part of another, or of the constant text.
 */
export function makeTemplate<T>(
  render: (sample: T) => string,
  valuesOf: (sample: T) => readonly string[],
  [first, second]: readonly [T, T],
): TextTemplate {
  const template = cut(render(first), valuesOf(first));
  if (fillTemplate(template, valuesOf(second)).toString() !== render(second))
    throw new Error('a template does not write what its renderer does');
  return template;
}

function cut(text: string, values: readonly string[]): TextTemplate {
  const found = values
    .flatMap((value, gap) =>
      placesOf(value, text).map((start) => ({ gap, start, end: start + value.length })),
    )
    .sort((a, b) => a.start - b.start);
  const starts = [0, ...found.map(({ end }) => end)];
  const texts = starts.map((start, i) => text.slice(start, found[i]?.start));
  const pieces = texts.map((piece) => Buffer.from(piece));
  const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
  return { pieces, texts, gaps: found.map(({ gap }) => gap), bytes };
}

function placesOf(value: string, text: string): number[] {
  const places: number[] = [];
  if (value === '') return places;
  for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + value.length)) places.push(at);
  return places;
}

/** A value that fills gaps: text, or text in UTF-8. */
export type TemplateValue = string | Uint8Array;

/** No text of these values has more bytes. */
export function maxTemplateBytes({ gaps, bytes }: TextTemplate, values: readonly TemplateValue[]): number {
  let most = bytes;
  // A UTF-16 code unit takes three bytes of UTF-8 at most.
  for (const gap of gaps) most += 3 * (values[gap] as TemplateValue).length;
  return most;
}

/** Writes a text, for which there must be room, to `target` from `at` on. @returns its end */
export function writeTemplate(
  { pieces, gaps }: TextTemplate,
  values: readonly TemplateValue[],
  target: Buffer,
  at: number,
): number {
  const first = pieces[0] as Uint8Array;
  target.set(first, at);
  let end = at + first.length;
  for (let i = 0; i < gaps.length; i++) {
    end += writeValue(values[gaps[i] as number] as TemplateValue, target, end);
    const piece = pieces[i + 1] as Uint8Array;
    target.set(piece, end);
    end += piece.length;
  }
  return end;
}

function writeValue(value: TemplateValue, target: Buffer, at: number): number {
  if (typeof value === 'string') return target.write(value, at);
  target.set(value, at);
  return value.length;
}

/** Makes a text. */
export function fillTemplate(template: TextTemplate, values: readonly TemplateValue[]): Buffer {
  let length = template.bytes;
  for (const gap of template.gaps) {
    const value = values[gap] as TemplateValue;
    length += typeof value === 'string' ? Buffer.byteLength(value) : value.length;
  }
  const text = Buffer.allocUnsafe(length);
  writeTemplate(template, values, text, 0);
  return text;
}

/** Makes a text as a string: faster for many short ones that are joined and encoded at once. */
export function joinTemplate({ texts, gaps }: TextTemplate, values: readonly string[]): string {
  let text = texts[0] as string;
  for (let i = 0; i < gaps.length; i++)
    text += (values[gaps[i] as number] as string) + (texts[i + 1] as string);
  return text;
}
