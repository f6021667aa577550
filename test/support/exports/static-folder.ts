/** A web server that knows nothing of the service: the files of a folder, by their names, as any server of a bucket. */
import { createReadStream } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
};

/** Serves the files below a folder, until the test ends. @returns the address of the folder, without a slash at its end */
export async function serveFolder(
  { teardown }: { teardown: (stop: () => unknown) => void },
  folder: string,
): Promise<string> {
  const server = createServer(({ url = '/' }, response) => {
    const path = normalize(new URL(url, 'http://localhost').pathname);
    const file = createReadStream(join(folder, path));
    file.on('error', () => response.writeHead(404).end('not found\n'));
    file.on('open', () => {
      response.writeHead(200, { 'content-type': TYPES[extname(path)] ?? 'application/octet-stream' });
      file.pipe(response);
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
