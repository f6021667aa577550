import type { SampleRequest } from './request.js';

/** The request as a command of a shell. */
export function curlSample({ method, path, needsKey, body, saveAs }: SampleRequest, baseUrl: string): string {
  const isPlain = method === (body === undefined ? 'GET' : 'POST');
  const parts = [
    `curl ${isPlain ? '' : `-X ${method} `}${quoted(`${baseUrl}${path}`)}`,
    needsKey ? '-H "Authorization: Bearer $ATTEST_API_KEY"' : '',
  ];
  if (body !== undefined) {
    const data = 'json' in body ? `-d ${quoted(pretty(body.json))}` : `--data-binary @${body.file}`;
    parts.push(`-H ${quoted(`Content-Type: ${body.type}`)}`, data);
  }
  if (saveAs !== undefined) parts.push(`-o ${saveAs}`);
  return `${parts.filter((part) => part !== '').join(' \\\n  ')}\n`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function pretty(value: unknown): string {
  const line = JSON.stringify(value);
  return line.length < 40 ? line : JSON.stringify(value, undefined, 2);
}
