// Starts the local servers named on the command line and prints their URLs as JSON; stops them when stdin ends.
import { text } from 'node:stream/consumers';
import { lockDataDir } from '../../../src/server/embedded/data-dir.js';
import { EmbeddedError } from '../../../src/server/embedded/embedded-error.js';
import { startNats } from '../../../src/server/embedded/nats.js';
import { startPostgres } from '../../../src/server/embedded/postgres.js';

const [dataDirPath = '', cacheDir = '', ...wanted] = process.argv.slice(2);
const log = { debug: () => {}, warn: () => {}, error: () => {} };

try {
  const dataDir = await lockDataDir({ path: dataDirPath });
  const options = { dataDir, log, ...(cacheDir === '' ? {} : { cacheDir }) };
  const postgres = wanted.includes('postgres') ? await startPostgres(options) : undefined;
  const nats = wanted.includes('nats') ? await startNats(options) : undefined;
  const servers = [postgres, nats].filter((server) => server !== undefined);
  const answer = { databaseUrl: postgres?.url, natsUrl: nats?.url, pids: servers.map(({ pid }) => pid) };
  process.stdout.write(`${JSON.stringify(answer)}\n`);
  await text(process.stdin);
  for (const server of servers) await server.stop();
} catch (error) {
  if (!(error instanceof EmbeddedError)) throw error;
  process.stdout.write(`${JSON.stringify({ code: error.code, message: error.message })}\n`);
}
