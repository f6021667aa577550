import type { Verification } from '../../proof/verify/verify.js';
import { printable } from '../../protocol/printable.js';
import { html } from './html.js';

/** A badge: its short text, its colour, and the whole sentence. */
type Badge = { value: string; colour: string; title: string };

const LABEL = 'attested';
const GREEN = '#0b6b3a';
const AMBER = '#7a5200';
const GREY = '#5a6470';
/** Widths in pixels: of a character of the font, and beside each text. */
const CHARACTER = 6.4;
const PADDING = 7;
const ID_ENDS = { first: 8, last: 4 };

/** The badge of a submission without a public bundle, which may not exist at all. */
export const UNKNOWN_BADGE = badgeSvg({
  value: 'unknown',
  colour: GREY,
  title: 'There is no public bundle of this submission.',
});

/** The badge for a verified bundle: when and by whom. For any other, that it is not verified. */
export function verifiedBadge({ verdict, summary, statement, existedBy }: Verification): string {
  if (verdict !== 'verified' || statement === undefined) {
    return badgeSvg({ value: 'not verified', colour: AMBER, title: printable(summary) });
  }
  const when = existedBy === undefined ? '' : `${existedBy.toISOString().slice(0, 10)} `;
  const value = `${when}by ${shortId(printable(statement.project))}`;
  return badgeSvg({ value, colour: GREEN, title: printable(summary) });
}

function badgeSvg({ value, colour, title }: Badge): string {
  const [left, right] = [LABEL, value].map((text) => ({ text, width: text.length * CHARACTER }));
  const [leftWidth, rightWidth] = [left!, right!].map(({ width }) => Math.ceil(width + 2 * PADDING));
  const width = leftWidth! + rightWidth!;
  return html`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="20" viewBox="0 0 ${width} 20" role="img" aria-label="${title}">
<title>${title}</title>
<rect width="${width}" height="20" rx="4" fill="${colour}"/>
<path d="M4 0h${leftWidth! - 4}v20H4a4 4 0 0 1-4-4V4a4 4 0 0 1 4-4z" fill="#2b333d"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="${PADDING}" y="14" textLength="${Math.round(left!.width)}">${LABEL}</text>
<text x="${leftWidth! + PADDING}" y="14" textLength="${Math.round(right!.width)}">${value}</text>
</g>
</svg>
`.html;
}

/** The beginning and the end of an id: those of one hour begin alike. */
function shortId(id: string): string {
  const { first, last } = ID_ENDS;
  return id.length <= first + last + 1 ? id : `${id.slice(0, first)}…${id.slice(-last)}`;
}
