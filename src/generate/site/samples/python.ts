import type { JsonValue } from '@bufbuild/protobuf';
import type { SampleRequest } from './request.js';

/** The request as a program in Python, with the library requests. */
export function pythonSample(request: SampleRequest, baseUrl: string): string {
  const { method, path, needsKey, body, saveAs } = request;
  const headers = [
    ...(needsKey ? [`"Authorization": f"Bearer {os.environ['ATTEST_API_KEY']}"`] : []),
    ...(body !== undefined && 'file' in body ? [`"Content-Type": ${JSON.stringify(body.type)}`] : []),
  ];
  const lines = [
    needsKey ? 'import os\n\nimport requests\n' : 'import requests\n',
    `response = requests.${method.toLowerCase()}(`,
    `    ${JSON.stringify(`${baseUrl}${path}`)},`,
    ...(headers.length === 0 ? [] : [`    headers={${headers.join(', ')}},`]),
    ...(body === undefined ? [] : [`    ${bodyArgument(body)},`]),
    '    timeout=30,',
    ')',
    'response.raise_for_status()',
    saveAs === undefined ? `print(${printed(body)})` : `open("${saveAs}", "wb").write(response.content)`,
  ];
  return `${lines.join('\n')}\n`;
}

function bodyArgument(body: NonNullable<SampleRequest['body']>): string {
  if ('file' in body) return `data=open("${body.file}", "rb")`;
  return `json=${literal(body.json, '    ')}`;
}

function printed(body: SampleRequest['body']): string {
  return body !== undefined && 'file' in body ? 'response.headers["Location"]' : 'response.json()';
}

/** JSON as Python writes it, indented. */
function literal(value: JsonValue, indent: string): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value !== 'object') return JSON.stringify(value);
  const deeper = `${indent}    `;
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  const items = Array.isArray(value)
    ? value.map((item) => literal(item, deeper))
    : Object.entries(value).map(([name, member]) => `${JSON.stringify(name)}: ${literal(member, deeper)}`);
  if (items.length === 0) return `${open}${close}`;
  return `${open}\n${items.map((item) => `${deeper}${item},`).join('\n')}\n${indent}${close}`;
}
