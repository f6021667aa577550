import { escapeHtml, type Html } from './html.js';

/** The CommonMark that comments of protos are written in: paragraphs, lists with `-`, and code between backquotes. */
export function markdown(text: string | undefined): Html {
  return {
    html: (text ?? '')
      .split(/\n{2,}/)
      .map(block)
      .join(''),
  };
}

function block(text: string): string {
  if (text === '') return '';
  const lines = text.split('\n');
  if (!lines.every((line) => line.startsWith('- '))) return `<p>${inline(text)}</p>`;
  return `<ul>${lines.map((line) => `<li>${inline(line.slice(2))}</li>`).join('')}</ul>`;
}

function inline(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>');
}
