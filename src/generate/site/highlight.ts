import { createRequire } from 'node:module';
import { escapeHtml } from '../../server/web/html.js';

/** What is used of highlight.js, whose own types declare the browser's names in every file of the project. */
type Highlighter = {
  registerLanguage(name: string, language: unknown): void;
  getLanguage(name: string): unknown;
  highlight(code: string, options: { language: string }): { value: string };
};

const LANGUAGES = ['bash', 'groovy', 'json', 'python', 'shell', 'typescript', 'yaml'];

const require = createRequire(import.meta.url);
const highlighter = require('highlight.js/lib/core') as Highlighter;
for (const name of LANGUAGES) {
  highlighter.registerLanguage(name, require(`highlight.js/lib/languages/${name}`));
}

/** A block of code with its tokens in elements of the classes `hljs-…`, or as it is if its language is unknown. */
export function highlight(code: string, language: string): string {
  const isKnown = highlighter.getLanguage(language) !== undefined;
  const content = isKnown ? highlighter.highlight(code, { language }).value : escapeHtml(code);
  return `<pre tabindex="0" role="group" aria-label="Code"><code>${content}</code></pre>`;
}
