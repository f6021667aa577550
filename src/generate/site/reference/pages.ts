import type { DescMethod } from '@bufbuild/protobuf';
import type { Page } from '../layout.js';
import type { OpenApi, Place, Schema } from './openapi.js';
import { operationArticle } from './operation.js';
import { groupsOf, overviewArticle, schemasArticle } from './overview.js';

/** The pages of the reference: what all operations share, the schemas, and each operation. `rpcs`: by their full names. */
export function referencePages(document: OpenApi, rpcs: ReadonlyMap<string, DescMethod>): Page[] {
  const groups = groupsOf(document);
  const schemas = Object.entries(document.components.schemas ?? {}) as unknown as [string, Schema][];
  return [
    {
      url: '/docs/api',
      title: 'API reference',
      content: overviewArticle(document),
      headings: [...groups.map(({ name }) => heading(`tag-${name}`, name)), heading('headers', 'Headers')],
      sections: groups.map(({ name, description }) => ({
        id: `tag-${name}`,
        title: name,
        text: description,
      })),
    },
    {
      url: '/docs/api/schemas',
      title: 'Schemas',
      content: schemasArticle(document),
      headings: [],
      sections: schemas.map(([name, schema]) => ({
        id: `schema-${name}`,
        title: name,
        text: [schema.description ?? '', ...Object.keys(schema.properties ?? {})].join('\n'),
      })),
    },
    ...groups.flatMap(({ places }) => places.map((place) => operationPage(document, place, rpcs))),
  ];
}

function heading(id: string, text: string) {
  return { level: 2, id, text };
}

function operationPage(document: OpenApi, place: Place, rpcs: ReadonlyMap<string, DescMethod>): Page {
  const { method, path, operation } = place;
  const { operationId, summary, description, tags } = operation;
  const rpc = rpcs.get(operation['x-rpc'] ?? '');
  if (tags !== undefined && rpc === undefined) throw new Error(`${operationId} is of no RPC`);
  return {
    url: `/docs/api/${operationId}`,
    title: summary,
    content: operationArticle(document, place, rpc),
    headings: [],
    sections: [
      { id: '', title: summary, text: `${method.toUpperCase()} ${path} ${operationId}\n${description}` },
    ],
  };
}
