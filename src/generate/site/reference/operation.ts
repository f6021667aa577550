import type { DescMethod, JsonValue } from '@bufbuild/protobuf';
import { type Html, html } from '../../../server/web/html.js';
import { renderText } from '../document.js';
import { highlight } from '../highlight.js';
import { curlSample } from '../samples/curl.js';
import { pythonSample } from '../samples/python.js';
import { sampleRequest } from '../samples/request.js';
import { typescriptSample } from '../samples/typescript.js';
import { answers, bodies } from './answers.js';
import { fieldList } from './fields.js';
import { type OpenApi, type Operation, type Parameter, type Place, resolve } from './openapi.js';

/** What an operation's parameters are in, with the heading of each kind. */
const PLACES = [
  { where: 'path', title: 'Path' },
  { where: 'query', title: 'Query' },
  { where: 'header', title: 'Headers' },
] as const;

/** All that the document says of one operation; `rpc` is the method that it calls, of which webhooks have none. */
export function operationArticle(document: OpenApi, place: Place, rpc: DescMethod | undefined): Html {
  const { method, path, operation } = place;
  return html`<h1>${operation.summary}</h1>
<p class="route"><b class="${method}">${method.toUpperCase()}</b> <code>${path}</code></p>
<div class="columns"><div class="code-column">
${rpc === undefined ? undefined : samples(document, place, rpc)}
${examples(document, operation, rpc === undefined)}
</div><div>
${{ html: renderText(operation.description) }}
${operation['x-rpc'] === undefined ? undefined : html`<p>RPC: <code>${operation['x-rpc']}</code></p>`}
${parameters(document, operation)}
${operation.requestBody === undefined ? undefined : html`<h2 id="body">Request body</h2>${bodies(document, operation.requestBody.content)}`}
${answers(document, operation)}
</div></div>`;
}

/** The call in three languages, of which the reader chooses one. */
function samples(document: OpenApi, place: Place, rpc: DescMethod): Html {
  const baseUrl = document.servers[0]?.url ?? '';
  const request = sampleRequest(document, place);
  const languages = [
    { id: 'curl', title: 'curl', language: 'bash', code: curlSample(request, baseUrl) },
    {
      id: 'typescript',
      title: 'TypeScript',
      language: 'typescript',
      code: typescriptSample(request, rpc, baseUrl),
    },
    { id: 'python', title: 'Python', language: 'python', code: pythonSample(request, baseUrl) },
  ];
  const choices = languages.map(
    ({ id, title }, at) =>
      html`<label><input type="radio" name="language" value="${id}"${at === 0 ? html` checked` : undefined}>${title}</label>`,
  );
  const blocks = languages.map(
    ({ id, language, code }) =>
      html`<div class="sample" data-language="${id}">${{ html: highlight(code, language) }}</div>`,
  );
  return html`<fieldset class="segments"><legend class="sr">Language of the example</legend>${choices}</fieldset>
${blocks}`;
}

/** The body of the first answer with an example, or of an event's request. */
function examples(document: OpenApi, operation: Operation, isEvent: boolean): Html | undefined {
  const bodies = isEvent
    ? [{ status: 'Request', content: operation.requestBody?.content }]
    : Object.entries(operation.responses).map(([status, response]) => ({
        status: `Response ${status}`,
        content: resolve(document, response).content,
      }));
  const [first] = bodies.flatMap(({ status, content = {} }) =>
    Object.values(content).flatMap(({ example }) => (example === undefined ? [] : [{ status, example }])),
  );
  if (first === undefined) return undefined;
  return html`<p class="caption">${first.status}</p>${{ html: highlight(`${pretty(first.example)}\n`, 'json') }}`;
}

function parameters(document: OpenApi, { parameters = [] }: Operation): Html {
  const all = parameters.map((parameter) => resolve<Parameter>(document, parameter));
  const lists = PLACES.flatMap(({ where, title }) => {
    const fields = all
      .filter((parameter) => parameter.in === where)
      .map(({ name, schema, description, required = false }) => ({
        name,
        schema,
        description,
        isRequired: required,
      }));
    return fields.length === 0 ? [] : [html`<h2 id="${where}">${title}</h2>${fieldList(document, fields)}`];
  });
  return html`${lists}`;
}

function pretty(value: JsonValue): string {
  return JSON.stringify(value, undefined, 2);
}
