// Endpoints that take every webhook: as many bare HTTP servers as the first argument says, in a process of their own.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const count = Number(process.argv[2]);
const urls: string[] = [];
for (let i = 0; i < count; i++) {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.writeHead(204).end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`);
}
console.log(JSON.stringify(urls));
process.once('SIGINT', () => process.exit(0));
