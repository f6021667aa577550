/** Smaller bodies are sent uncompressed: compressing them takes longer than sending the bytes it saves. */
export const MIN_COMPRESSED_BYTES = 16 * 1024;

/** Returns whether an `Accept-Encoding` accepts gzip: gzip or `*` with a weight above 0 (RFC 9110, 12.5.3). */
export function acceptsGzip(header: string | string[] | undefined): boolean {
  const codings = String(header ?? '')
    .toLowerCase()
    .split(',')
    .map((item) => item.split(';').map((part) => part.trim()));
  const found = ['gzip', 'x-gzip', '*'].map((name) => codings.find(([coding]) => coding === name));
  const [, weight = 'q=1'] = found.find((item) => item !== undefined) ?? ['', 'q=0'];
  return Number(weight.replace(/^q=/, '')) > 0;
}
