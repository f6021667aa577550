import { type Html, html } from '../../../server/web/html.js';
import { renderText } from '../document.js';
import { type OpenApi, refName, resolve, type Schema } from './openapi.js';

/** Keywords that bound a value, each with how it reads before its operand. */
const BOUNDS: readonly [keyword: string, text: string][] = [
  ['minimum', 'from'],
  ['exclusiveMinimum', 'above'],
  ['maximum', 'to'],
  ['exclusiveMaximum', 'below'],
  ['minLength', 'min. length'],
  ['maxLength', 'max. length'],
  ['minItems', 'min. items'],
  ['maxItems', 'max. items'],
  ['minProperties', 'min. members'],
  ['maxProperties', 'max. members'],
  ['pattern', 'matches'],
  ['default', 'default'],
];

/** Members of members are on the page; what is deeper is behind the link to its schema. */
const DEPTH = 2;

/** A member of an object, or a parameter. */
export type Field = { name: string; schema: Schema; description: string | undefined; isRequired: boolean };

/** The members of a schema that is an object, or of the one that it refers to. */
export function fieldsOf(document: OpenApi, schema: Schema): Field[] {
  const { properties = {}, required = [] } = resolve(document, schema);
  return Object.entries(properties).map(([name, member]) => ({
    name,
    schema: member,
    description: member.description,
    isRequired: required.includes(name),
  }));
}

/** A list of fields; those that are objects unfold. */
export function fieldList(document: OpenApi, fields: readonly Field[], depth = DEPTH): Html {
  const items = fields.map(
    ({ name, schema, description, isRequired }) =>
      html`<li><p class="field"><code>${name}</code> <span class="type">${typeOf(document, schema)}</span>${isRequired ? html` <em>required</em>` : undefined}</p>
${{ html: renderText(description) }}${members(document, schema, depth)}</li>
`,
  );
  return html`<ul class="fields">${items}</ul>`;
}

function members(document: OpenApi, schema: Schema, depth: number): Html | undefined {
  const fields = fieldsOf(document, schema.items ?? schema);
  if (depth === 0 || fields.length === 0) return undefined;
  const count = fields.length === 1 ? '1 member' : `${fields.length} members`;
  return html`<details><summary>${count}</summary>${fieldList(document, fields, depth - 1)}</details>`;
}

/** The type of a value with its constraints, in a few words. */
export function typeOf(document: OpenApi, schema: Schema): Html {
  if (typeof schema.$ref === 'string') {
    const target = resolve(document, schema);
    return target.enum === undefined ? schemaLink(refName(schema.$ref)) : typeOf(document, target);
  }
  if (schema.anyOf !== undefined) {
    return joined(
      schema.anyOf.map((one) => typeOf(document, one)),
      ' or ',
    );
  }
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (schema.type === 'array' && schema.items !== undefined) {
    return html`array of ${typeOf(document, schema.items)}${bounds(schema)}`;
  }
  const values = schema.enum?.map((value) => html`<code>${String(value)}</code>`) ?? [];
  const format = typeof schema.format === 'string' ? ` (${schema.format})` : '';
  const oneOf = values.length === 0 ? undefined : html`: ${joined(values, ', ')}`;
  return html`${schema.type ?? 'any'}${format}${oneOf}${bounds(schema)}`;
}

function schemaLink(name: string): Html {
  return html`<a href="/docs/api/schemas#schema-${name}">${name}</a>`;
}

function bounds(schema: Schema): Html {
  const given = BOUNDS.filter(([keyword]) => schema[keyword] !== undefined);
  return joined(
    given.map(([keyword, text]) => html`, ${text} <code>${String(schema[keyword])}</code>`),
    '',
  );
}

function joined(pieces: readonly Html[], separator: string): Html {
  return { html: pieces.map((piece) => piece.html).join(separator) };
}
