import type { DescField, DescMessage, DescMethod, JsonObject, JsonValue } from '@bufbuild/protobuf';
import { methodName } from '../../../client/resource.js';
import type { SampleRequest } from './request.js';

/** The members of the client library by the services that they call, with the name that their methods omit. */
const RESOURCES: ReadonlyMap<string, { member: string; name: string }> = new Map([
  ['AttestationService', { member: 'attestations', name: 'Attestation' }],
  ['BatchService', { member: 'batches', name: 'Batch' }],
  ['WebhookService', { member: 'webhooks', name: 'Webhook' }],
  ['ExportService', { member: 'exports', name: 'Export' }],
  ['InfoService', { member: 'service', name: 'Info' }],
]);

/**
 * The request as a program with the client library, or with fetch where the library has no such method. `format` is what
 * the path alone says of the request.
 */
export function typescriptSample(request: SampleRequest, rpc: DescMethod, baseUrl: string): string {
  const resource = RESOURCES.get(rpc.parent.name);
  if (resource === undefined) return fetchSample(request, baseUrl);
  const isFile = request.saveAs !== undefined;
  const call = `client.${resource.member}.${methodName(rpc.localName, resource.name)}`;
  const result = isFile ? '{ data }' : rpc.output.field.data?.fieldKind === 'list' ? 'page' : 'result';
  return [
    ...(isFile ? ["import { writeFile } from 'node:fs/promises';"] : []),
    "import { createClient } from '@attestation-service/client';",
    '',
    ...(request.needsKey ? ["const { ATTEST_API_KEY = '' } = process.env;"] : []),
    `const client = createClient({ baseUrl: '${baseUrl}', apiKey: ATTEST_API_KEY });`,
    '',
    `const ${result} = await ${call}(${argument(request, rpc.input)});`,
    isFile ? `await writeFile('${request.saveAs}', data);` : `console.log(${result});`,
    '',
  ].join('\n');
}

/** What the method is called with: an id alone, or the members of the request. */
function argument({ variables, query, body, saveAs }: SampleRequest, input: DescMessage): string {
  const members: JsonObject = {
    ...variables,
    ...(saveAs !== undefined && { format: saveAs }),
    ...query,
    ...(body !== undefined && 'json' in body ? (body.json as JsonObject) : {}),
  };
  const names = Object.keys(members);
  if (names.length === 0) return '';
  if (names.length === 1 && names[0] === 'id') return `'${members.id}'`;
  return messageLiteral(input, members, '');
}

function messageLiteral(desc: DescMessage, json: JsonObject, indent: string): string {
  const members = Object.entries(json).map(([name, value]) => {
    const field = desc.fields.find((one) => one.name === name);
    if (field === undefined) throw new Error(`${desc.typeName} has no ${name}`);
    return `${field.localName}: ${fieldLiteral(field, value, `${indent}  `)}`;
  });
  return braced(members, '{}', indent);
}

function fieldLiteral(field: DescField, value: JsonValue, indent: string): string {
  if (Array.isArray(value) && field.message !== undefined) {
    const { message } = field;
    return braced(
      value.map((item) => messageLiteral(message, item as JsonObject, `${indent}  `)),
      '[]',
      indent,
    );
  }
  const type = field.message?.typeName;
  if (type === 'google.protobuf.Timestamp') return `new Date('${value}')`;
  if (field.message === undefined || type === 'google.protobuf.Struct') return jsonLiteral(value, indent);
  return messageLiteral(field.message, value as JsonObject, indent);
}

function jsonLiteral(value: JsonValue, indent: string): string {
  if (typeof value === 'string') return `'${value.replaceAll("'", "\\'")}'`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (Array.isArray(value))
    return braced(
      value.map((item) => jsonLiteral(item, `${indent}  `)),
      '[]',
      indent,
    );
  const members = Object.entries(value).map(([name, item]) => {
    const key = /^[A-Za-z_]\w*$/.test(name) ? name : `'${name}'`;
    return `${key}: ${jsonLiteral(item, `${indent}  `)}`;
  });
  return braced(members, '{}', indent);
}

const MAX_WIDTH = 60;

function braced(items: readonly string[], [open, close]: string, indent: string): string {
  const padding = open === '{' ? ' ' : '';
  const line = items.join(', ');
  if (line.length < MAX_WIDTH && !line.includes('\n')) return `${open}${padding}${line}${padding}${close}`;
  return `${open}\n${items.map((item) => `${indent}  ${item},`).join('\n')}\n${indent}${close}`;
}

function fetchSample({ method, path, needsKey, body, saveAs }: SampleRequest, baseUrl: string): string {
  const headers = [
    ...(needsKey ? [`Authorization: \`Bearer \${process.env.ATTEST_API_KEY}\``] : []),
    ...(body === undefined ? [] : [`'Content-Type': '${body.type}'`]),
  ];
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}'`]),
    ...(headers.length === 0 ? [] : [`headers: { ${headers.join(', ')} }`]),
    ...(body === undefined ? [] : [`body: ${fetchBody(body)}`]),
  ];
  const imports = [
    ...(body !== undefined && 'file' in body ? ['readFile'] : []),
    ...(saveAs === undefined ? [] : ['writeFile']),
  ];
  return [
    ...(imports.length === 0 ? [] : [`import { ${imports.join(', ')} } from 'node:fs/promises';\n`]),
    `const response = await fetch('${baseUrl}${path}', ${braced(options, '{}', '')});`,
    'if (!response.ok) throw new Error(response.statusText);',
    fetchResult(body, saveAs),
    '',
  ].join('\n');
}

function fetchBody(body: NonNullable<SampleRequest['body']>): string {
  if ('file' in body) return `await readFile('${body.file}')`;
  return `JSON.stringify(${jsonLiteral(body.json, '  ')})`;
}

function fetchResult(body: SampleRequest['body'], saveAs: string | undefined): string {
  if (saveAs !== undefined)
    return `await writeFile('${saveAs}', new Uint8Array(await response.arrayBuffer()));`;
  const isFile = body !== undefined && 'file' in body;
  return isFile ? "console.log(response.headers.get('Location'));" : 'console.log(await response.json());';
}
