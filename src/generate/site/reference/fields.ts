import { type Html, html } from './html.js';
import { markdown } from './markdown.js';
import { refName, type Schema } from './openapi.js';

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

/** A schema of the components: a table of its members, or its values. */
export function schemaSection(name: string, schema: Schema): Html {
  const members = Object.entries(schema.properties ?? {});
  return html`<section class="schema" id="schema-${name}">
<h3>${name}</h3>
${markdown(schema.description)}
${members.length === 0 ? undefined : memberTable(members, schema.required ?? [])}
</section>
`;
}

/** Members of an object, or parameters. */
export function memberTable(members: readonly [string, Schema][], required: readonly string[]): Html {
  const rows = members.map(
    ([
      name,
      schema,
    ]) => html`<tr><th scope="row"><code>${name}</code>${required.includes(name) ? html` <em>required</em>` : undefined}</th>
<td>${typeOf(schema)}</td><td>${markdown(schema.description)}</td></tr>
`,
  );
  return html`<table><tbody>${rows}</tbody></table>`;
}

/** The constraints of a value, in a few words. */
export function typeOf(schema: Schema): Html {
  if (typeof schema.$ref === 'string') return schemaLink(refName(schema.$ref));
  if (schema.anyOf !== undefined) return joined(schema.anyOf.map(typeOf), ' or ');
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (schema.type === 'array' && schema.items !== undefined) {
    return html`array of ${typeOf(schema.items)}${bounds(schema)}`;
  }
  const values = schema.enum?.map((value) => html`<code>${String(value)}</code>`) ?? [];
  const format = typeof schema.format === 'string' ? ` (${schema.format})` : '';
  const oneOf = values.length === 0 ? undefined : html`, one of ${joined(values, ', ')}`;
  return html`${schema.type ?? 'any'}${format}${oneOf}${bounds(schema)}`;
}

function schemaLink(name: string): Html {
  return html`<a href="#schema-${name}">${name}</a>`;
}

function bounds(schema: Schema): Html {
  const given = BOUNDS.filter(([keyword]) => schema[keyword] !== undefined);
  return {
    html: given
      .map(([keyword, text]) => html`, ${text} <code>${String(schema[keyword])}</code>`.html)
      .join(''),
  };
}

function joined(pieces: readonly Html[], separator: string): Html {
  return { html: pieces.map((piece) => piece.html).join(separator) };
}
