import GithubSlugger from 'github-slugger';
import MarkdownIt, { type Token } from 'markdown-it';
import { type Html, html } from '../../server/web/html.js';
import { highlight } from './highlight.js';

/** A heading of a page: its level from 1, its anchor as GitHub makes it, its text. */
export type Heading = { level: number; id: string; text: string };

/** What is between two headings, as text for the search. */
export type Section = { id: string; title: string; text: string };

export type Document = { html: string; headings: Heading[]; sections: Section[] };

/** Returns where a relative link of the document leads to, or undefined if the site has no such page; `title`: of a page. */
export type ResolveLink = (href: string) => { url: string; title?: string | undefined } | undefined;

/** A link's text that is a file's name. */
const FILE_NAME = /^[\w./-]+\.md$/;
/** A drawing of docs/pictures/, as pages of docs/ name it. */
const DRAWING = /^pictures\/[\w-]+\.svg$/;
const SCHEME = /^[a-z][a-z0-9+.-]*:/i;

const markdownIt = new MarkdownIt({ html: false, highlight });
markdownIt.renderer.rules.table_open = (tokens, at) =>
  tableStart(String(tokens[at]?.meta?.name ?? 'Table')).html;
markdownIt.renderer.rules.table_close = () => '</table></div>\n';
// Drawings are shown. Photographs of pages that are one click away would be most of a page's bytes.
markdownIt.renderer.rules.image = (tokens, at) => {
  const [content, src] = [tokens[at]?.content ?? '', String(tokens[at]?.attrGet('src'))];
  if (!DRAWING.test(src)) return markdownIt.utils.escapeHtml(content);
  return html`<img src="/docs/${src}" alt="${content}">`.html;
};

/** Renders Markdown, with the anchors that GitHub gives to headings. Links that lead nowhere on the site become text. */
export function renderDocument(markdown: string, resolve: ResolveLink): Document {
  const env = {};
  const tokens = markdownIt.parse(markdown, env);
  const slugger = new GithubSlugger();
  const headings: Heading[] = [];
  const sections: Section[] = [];
  tokens.forEach((token, at) => {
    if (token.type === 'heading_open') {
      const text = textOf(tokens[at + 1]);
      const id = slugger.slug(text);
      token.attrSet('id', id);
      headings.push({ level: Number(token.tag.slice(1)), id, text });
      sections.push({ id, title: text, text: '' });
    } else if (tokens[at - 1]?.type !== 'heading_open') {
      const section = sections.at(-1);
      const text = textOf(token);
      if (section !== undefined && text !== '') section.text += `${text}\n`;
    }
    if (token.type === 'table_open') token.meta = { name: headings.at(-1)?.text };
    if (token.children) token.children = linked(token.children, resolve);
  });
  return { html: markdownIt.renderer.render(tokens, markdownIt.options, env), headings, sections };
}

/** The beginning of a table with a name; it ends with `</table></div>`. Wide ones scroll, also by the keyboard. */
export function tableStart(name: string): Html {
  return html`<div class="table" tabindex="0" role="group" aria-label="${name}"><table aria-label="${name}">
`;
}

/** A paragraph or less of Markdown, as the comments of protos are. */
export function renderText(markdown: string | undefined): string {
  return markdownIt.render(markdown ?? '');
}

function textOf(token: Token | undefined): string {
  if (token === undefined) return '';
  if (token.type === 'fence' || token.type === 'code_block') return token.content;
  if (token.type !== 'inline') return '';
  return (token.children ?? [])
    .map(({ type, content }) => (type === 'softbreak' ? ' ' : type === 'image' ? '' : content))
    .join('');
}

/** The tokens of a paragraph, its relative links being those of the site: a link that names a file names the page. */
function linked(tokens: readonly Token[], resolve: ResolveLink): Token[] {
  const dropped: boolean[] = [];
  return tokens.filter((token, at) => {
    if (token.type === 'link_close') return dropped.pop() !== true;
    if (token.type !== 'link_open') return true;
    const href = String(token.attrGet('href'));
    const target = SCHEME.test(href) ? { url: href } : resolve(href);
    dropped.push(target === undefined);
    if (target === undefined) return false;
    token.attrSet('href', target.url);
    const name = tokens[at + 1];
    if (name && target.title !== undefined && FILE_NAME.test(name.content)) name.content = target.title;
    return true;
  });
}
