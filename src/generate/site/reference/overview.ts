import type { JsonObject } from '@bufbuild/protobuf';
import { type Html, html } from './html.js';
import { markdown } from './markdown.js';
import type { OpenApi, PathItem, Schema } from './openapi.js';
import { headerTable, operationSection, type Place } from './operation.js';
import { schemaSection } from './schema.js';

/**
 * The API reference as one HTML page, made of an OpenAPI document that `npm run generate` wrote. It has no script, its
 * style sheet is `docs/reference.css` beside it, and all its links are relative.
 */
export function referencePage(generated: JsonObject): string {
  const document = generated as unknown as OpenApi;
  const { info, servers } = document;
  const groups = document.tags.map(({ name, description }) => ({
    name,
    description,
    places: placesOf(document.paths).filter(({ operation }) => operation.tags?.includes(name)),
  }));
  const events = placesOf(document.webhooks);
  const schemas = Object.entries(document.components.schemas ?? {}) as unknown as [string, Schema][];
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title}: API reference</title>
<link rel="stylesheet" href="docs/reference.css">
</head>
<body>
<nav aria-label="Contents">
<a href="#top"><b>${info.title}</b></a>
${groups.map(({ name, places }) => navGroup(name, places))}
${navGroup('Events', events)}
<h2><a href="#headers">Headers</a></h2>
<h2><a href="#schemas">Schemas</a></h2>
</nav>
<main id="top">
<h1>${info.title} <small>${info.version}</small></h1>
<p>At <code>${servers[0]?.url}</code>. For programs: <a href="openapi.json">openapi.json</a> (OpenAPI 3.1),
<a href="descriptor.binpb">descriptor.binpb</a> (protobuf descriptors).</p>
${markdown(info.description)}
${groups.map(({ name, description, places }) => section(document, name, description, places))}
${section(document, 'Events', EVENTS, events)}
<section id="headers"><h2>Headers</h2>
<p>Of answers. Those that can come with an answer are named there.</p>
${headerTable(document)}
</section>
<section id="schemas"><h2>Schemas</h2>
${schemas.map(([name, schema]) => schemaSection(name, schema))}
</section>
</main>
</body>
</html>
`;
  return page.html;
}

const EVENTS = 'Requests that the service makes, to the addresses that subscribe to them.';

function section(document: OpenApi, name: string, description: string, places: readonly Place[]): Html {
  return html`<section id="tag-${name}"><h2>${name}</h2>
${markdown(description)}
${places.map((place) => operationSection(document, place))}
</section>
`;
}

function navGroup(name: string, places: readonly Place[]): Html {
  const items = places.map(
    ({ method, path, operation }) =>
      html`<li><a href="#${operation.operationId}"><b class="${method}">${method.toUpperCase()}</b> ${path}</a></li>
`,
  );
  return html`<h2><a href="#tag-${name}">${name}</a></h2><ul>${items}</ul>
`;
}

function placesOf(items: Readonly<Record<string, PathItem>>): Place[] {
  return Object.entries(items).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method, path, operation })),
  );
}
