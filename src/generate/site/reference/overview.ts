import { type Html, html } from '../../../server/web/html.js';
import { renderText, tableStart } from '../document.js';
import { fieldList, fieldsOf, typeOf } from './fields.js';
import { type Header, type OpenApi, type Place, placesOf, type Schema } from './openapi.js';

/** The operations of a tag, or the events. */
export type Group = { name: string; description: string; places: Place[] };

const EVENTS = 'Requests that the service makes, to the addresses that subscribe to them.';

/** The operations as the reference groups them: by tag, then the events. */
export function groupsOf(document: OpenApi): Group[] {
  const places = placesOf(document.paths);
  const groups = document.tags.map(({ name, description }) => ({
    name,
    description,
    places: places.filter(({ operation }) => operation.tags?.includes(name)),
  }));
  return [...groups, { name: 'Events', description: EVENTS, places: placesOf(document.webhooks) }];
}

/** What all operations have in common, and the list of them. */
export function overviewArticle(document: OpenApi): Html {
  const { info, servers, components } = document;
  const headers = Object.entries(components.headers ?? {}) as unknown as [string, Header][];
  return html`<h1>API reference</h1>
<p>At <code>${servers[0]?.url}</code>, version ${info.version}. For programs:
<a href="/openapi.json">openapi.json</a> (OpenAPI 3.1), <a href="/descriptor.binpb">descriptor.binpb</a> (protobuf descriptors).</p>
${{ html: renderText(info.description) }}
${groupsOf(document).map(groupSection)}
<h2 id="headers">Headers</h2>
<p>Of answers. Those that can come with an answer are named there.</p>
${tableStart('Headers')}<thead><tr><th>Header</th><th>Meaning</th><th>Example</th></tr></thead><tbody>${headers.map(headerRow)}</tbody></table></div>`;
}

function groupSection({ name, description, places }: Group): Html {
  const rows = places.map(
    ({ method, path, operation }) =>
      html`<tr><td><a href="/docs/api/${operation.operationId}">${operation.summary}</a></td>
<td class="route"><b class="${method}">${method.toUpperCase()}</b> <code>${path}</code></td></tr>
`,
  );
  return html`<h2 id="tag-${name}">${name}</h2>
${{ html: renderText(description) }}
${tableStart(name)}<thead><tr><th>Call</th><th>Route</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}

function headerRow([name, { description, example }]: [string, Header]): Html {
  return html`<tr id="header-${name}"><th scope="row"><code>${name}</code></th>
<td>${{ html: renderText(description) }}</td><td><code>${example}</code></td></tr>
`;
}

/** Every schema of the document, under the anchor that fields link to. */
export function schemasArticle(document: OpenApi): Html {
  const schemas = Object.entries(document.components.schemas ?? {}) as unknown as [string, Schema][];
  const sections = schemas.map(([name, schema]) => {
    const fields = fieldsOf(document, schema);
    return html`<section><h2 id="schema-${name}">${name}</h2>
${{ html: renderText(schema.description) }}
${fields.length === 0 ? html`<p class="type">${typeOf(document, schema)}</p>` : fieldList(document, fields, 0)}</section>
`;
  });
  return html`<h1>Schemas</h1>
<p>The objects of requests and answers, by name.</p>
${sections}`;
}
