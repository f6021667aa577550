/** An S3-compatible store that was not written for us: versitygw, over a folder. */
import { spawn } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { BUCKET, OWNER } from '../../support/exports/s3/fixture.js';
import { findFreePort } from '../../support/servers/free-port.js';
import { until } from '../../support/until.js';
import { tool } from '../tools.js';

export const VERSITYGW = 'versitygw';

/** Starts a store with the bucket that `OWNER` may write to, over folders of `dir`. @returns its address */
export async function startVersitygw(
  dir: string,
  { teardown }: { teardown: (stop: () => unknown) => void },
): Promise<string> {
  const [data, sidecar] = [join(dir, 's3-data'), join(dir, 's3-metadata')];
  await mkdir(join(data, BUCKET), { recursive: true });
  await mkdir(sidecar);
  const host = `127.0.0.1:${await findFreePort()}`;
  const { accessKeyId, secretAccessKey } = OWNER;
  const env = { ...process.env, ROOT_ACCESS_KEY: accessKeyId, ROOT_SECRET_KEY: secretAccessKey };
  const args = ['--port', host, '--region', 'us-east-1', 'posix', '--sidecar', sidecar, data];
  const store = spawn(tool(VERSITYGW), args, { env, stdio: 'ignore' });
  const ended = new Promise((resolve) => store.once('close', resolve));
  teardown(() => store.kill() && ended);
  await until('the store answers', async () => (await fetch(`http://${host}/`)).status > 0);
  return `http://${host}`;
}
