import type { JsonValue } from '@bufbuild/protobuf';
import { type Html, html } from './html.js';
import { markdown } from './markdown.js';
import {
  type Content,
  type Header,
  type OpenApi,
  type Operation,
  type Response,
  resolve,
} from './openapi.js';
import { memberTable, typeOf } from './schema.js';

/** An operation where it is found: by its method and path, or as the webhook of an event. */
export type Place = { method: string; path: string; operation: Operation };

/** All that the document says of one operation. */
export function operationSection(document: OpenApi, place: Place): Html {
  const { method, path, operation } = place;
  const { requestBody } = operation;
  return html`<article id="${operation.operationId}">
<h3>${operation.summary}</h3>
<p class="route"><b class="${method}">${method.toUpperCase()}</b> <code>${path}</code></p>
${markdown(operation.description)}
${operation['x-rpc'] === undefined ? undefined : html`<p>RPC: <code>${operation['x-rpc']}</code></p>`}
${parameters(document, operation)}
${requestBody === undefined ? undefined : html`<h4>Request body</h4>${content(requestBody.content)}`}
${operation.tags === undefined ? undefined : html`<h4>Try it</h4><pre>${curl(document, place)}</pre>`}
<h4>Answers</h4>
${Object.entries(operation.responses).map(([status, response]) => answer(status, resolve(document, response)))}
</article>
`;
}

function parameters(document: OpenApi, { parameters = [] }: Operation): Html | undefined {
  const resolved = parameters.map((parameter) => resolve(document, parameter));
  if (resolved.length === 0) return undefined;
  const required = resolved.filter((parameter) => parameter.required).map(({ name }) => name);
  const rows = resolved.map(({ name, description, schema, in: where }): [string, typeof schema] => [
    name,
    { ...schema, description: `In the ${where}. ${description}` },
  ]);
  return html`<h4>Parameters</h4>${memberTable(rows, required)}`;
}

function answer(status: string, response: Response): Html {
  const line = firstLine(response.description);
  return html`<details><summary><b class="s${status.slice(0, 1)}">${status}</b> ${line}</summary>
${response.description === line ? undefined : markdown(response.description)}
${response.content === undefined ? undefined : content(response.content)}
${headerLinks(Object.keys(response.headers ?? {}))}
</details>
`;
}

function headerLinks(names: readonly string[]): Html | undefined {
  if (names.length === 0) return undefined;
  const links = names.map((name) => html` <a href="#header-${name}"><code>${name}</code></a>`);
  return html`<p>Headers:${links}</p>`;
}

/** The descriptions of the headers that responses link to. */
export function headerTable({ components }: OpenApi): Html {
  const headers = Object.entries(components.headers ?? {}) as unknown as [string, Header][];
  const rows = headers.map(
    ([
      name,
      { description, example },
    ]) => html`<tr id="header-${name}"><th scope="row"><code>${name}</code></th>
<td>${markdown(description)}</td><td><code>${example}</code></td></tr>
`,
  );
  return html`<table><tbody>${rows}</tbody></table>`;
}

function content(bodies: Content): Html {
  const parts = Object.entries(bodies).map(
    ([mediaType, { schema, example }]) => html`<p><code>${mediaType}</code>: ${typeOf(schema)}</p>
${example === undefined ? undefined : html`<pre>${pretty(example)}</pre>`}`,
  );
  return html`${parts}`;
}

/** The operation as a command; the caller fills in the parts in capitals. */
function curl(document: OpenApi, { method, path, operation }: Place): string {
  const lines = [`curl -X ${method.toUpperCase()} '${document.servers[0]?.url ?? ''}${path}'`];
  lines.push(`-H "Authorization: Bearer $API_KEY"`);
  const [body] = Object.entries(operation.requestBody?.content ?? {});
  if (body !== undefined) {
    const [mediaType, { example }] = body;
    lines.push(
      `-H 'Content-Type: ${mediaType}'`,
      `-d '${JSON.stringify(example ?? {}).replaceAll("'", "'\\''")}'`,
    );
  }
  return lines.join(' \\\n  ');
}

/** The codes that a description begins its paragraphs with, or its first sentence. */
function firstLine(description: string): string {
  const codes = [...description.matchAll(/^`([a-z_.]+)`:/gm)].map(([, code]) => code);
  return codes.length > 0 ? codes.join(', ') : (description.split('\n', 1)[0] ?? '');
}

function pretty(value: JsonValue): string {
  return JSON.stringify(value, undefined, 2);
}
