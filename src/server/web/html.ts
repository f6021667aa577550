/** A piece of HTML that is safe to put into a page. */
export type Html = { readonly html: string };

type Piece = Html | string | number | undefined | readonly (Html | undefined)[];

/** Writes HTML: texts put into it are escaped, pieces of HTML and lists of them are not. */
export function html(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return { html: String.raw({ raw: strings }, ...pieces.map(write)) };
}

/** A text as HTML. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

function write(piece: Piece): string {
  if (piece === undefined) return '';
  if (typeof piece === 'string' || typeof piece === 'number') return escapeHtml(String(piece));
  return 'html' in piece ? piece.html : piece.map((item) => item?.html ?? '').join('');
}
