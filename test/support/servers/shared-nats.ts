import { randomBytes } from 'node:crypto';
import { connect } from 'nats';
import type { Test } from 'tap';
import '../foreign/nats-server.js';
import { testServers } from './shared-servers.js';

/** The URL of this run's nats-server, with user and password. */
export async function testNatsUrl(): Promise<string> {
  return (await testServers()).natsUrl;
}

/**
 * A name of letters and digits, for this test's streams and subjects to begin with. The streams that begin with it are
 * deleted when the test ends.
 */
export function testNatsPrefix(test: Test): string {
  const prefix = `T${randomBytes(6).toString('hex')}`;
  test.teardown(() => deleteStreams(prefix));
  return prefix;
}

async function deleteStreams(prefix: string): Promise<void> {
  const { host, username, password } = new URL(await testNatsUrl());
  const connection = await connect({ servers: host, user: username, pass: password });
  const manager = await connection.jetstreamManager();
  for await (const { config } of manager.streams.list()) {
    if (config.name.startsWith(prefix)) await manager.streams.delete(config.name);
  }
  await connection.close();
}
