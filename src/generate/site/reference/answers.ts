import { type Html, html } from '../../../server/web/html.js';
import { renderText, tableStart } from '../document.js';
import { fieldList, fieldsOf, typeOf } from './fields.js';
import { type Content, type OpenApi, type Operation, type Response, resolve } from './openapi.js';

/** How a description of an error begins: with its code. */
const CODE = /^`([a-z_.]+)`: (.*)$/s;

type Answer = { status: string; response: Response };

/** The answers of an operation: its results with their members, then its errors by code. */
export function answers(document: OpenApi, { responses }: Operation): Html {
  const all = Object.entries(responses).map(([status, response]) => ({
    status,
    response: resolve<Response>(document, response),
  }));
  const isError = ({ response }: Answer) => CODE.test(response.description);
  const results = all.filter((answer) => !isError(answer));
  const errors = all.filter(isError);
  return html`${results.map((answer) => result(document, answer))}
${errors.length === 0 ? undefined : errorTable(errors)}`;
}

function result(document: OpenApi, { status, response }: Answer): Html {
  return html`<h2 id="status-${status}">Response ${status}</h2>
${{ html: renderText(response.description) }}
${bodies(document, response.content ?? {})}
${headerLinks(Object.keys(response.headers ?? {}))}`;
}

/** Bodies by media type, with their members. */
export function bodies(document: OpenApi, content: Content): Html {
  const parts = Object.entries(content).map(([mediaType, { schema }]) => {
    const fields = fieldsOf(document, schema);
    return html`<p><code>${mediaType}</code>: ${typeOf(document, schema)}</p>
${fields.length === 0 ? undefined : fieldList(document, fields)}`;
  });
  return html`${parts}`;
}

function errorTable(errors: readonly Answer[]): Html {
  const rows = errors.flatMap(({ status, response }) =>
    response.description.split('\n\n').map((paragraph) => {
      const [, code = '', text = paragraph] = CODE.exec(paragraph) ?? [];
      return html`<tr><td>${status}</td><td><code>${code}</code></td><td>${{ html: renderText(text) }}</td></tr>
`;
    }),
  );
  return html`<h2 id="errors">Errors</h2>
${tableStart('Errors')}
<thead><tr><th>Status</th><th>Code</th><th>Meaning</th></tr></thead>
<tbody>${rows}</tbody></table></div>
<p><a href="/docs/errors">What to do about each error</a></p>`;
}

function headerLinks(names: readonly string[]): Html | undefined {
  if (names.length === 0) return undefined;
  const links = names.map((name) => html` <a href="/docs/api#header-${name}"><code>${name}</code></a>`);
  return html`<p class="quiet">Headers:${links}</p>`;
}
