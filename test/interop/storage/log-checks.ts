/**
 * The public log in a folder behind a plain web server, and in a bucket of versitygw that anybody may read, for Tessera's
 * client and fsck and for `attest audit`, while no process of the service runs.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PutBucketPolicyCommand, S3Client } from '@aws-sdk/client-s3';
import { PROGRAM } from '../../support/calling/run-cli.js';
import { BUCKET, bucketSetting, OWNER } from '../../support/exports/s3/fixture.js';
import { serveFolder } from '../../support/exports/static-folder.js';
import { startUp } from '../../support/servers/up.js';
import { until } from '../../support/until.js';
import { run } from '../command.js';
import { accepting, type Row, refusing } from '../rows.js';
import { type Bundle, fetchText } from '../scene.js';
import { tool } from '../tools.js';
import { startVersitygw, VERSITYGW } from './versitygw.js';

/** More than a full tile. */
const LEAVES = 300;
const AT_ONCE = 25;

type Place = { name: string; dir: string; setting: string; url: string };
type Teardown = { teardown: (stop: () => unknown) => void };

/** Both places, each with a service of its own that has ended. */
export async function checkStoredLog({ dir: within }: { dir: string }): Promise<Row[]> {
  const stops: (() => unknown)[] = [];
  const after = { teardown: (stop: () => unknown) => void stops.push(stop) };
  const dir = join(within, 'stored');
  await mkdir(dir);
  try {
    const rows: Row[] = [];
    for (const place of [await openFolder(dir, after), await openBucket(dir, after)])
      rows.push(...(await checkPlace(place)));
    return rows;
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

async function openFolder(within: string, after: Teardown): Promise<Place> {
  const dir = join(within, 'folder');
  const setting = join(dir, 'public');
  await mkdir(dir);
  return { name: 'a folder', dir, setting, url: await serveFolder(after, setting) };
}

async function openBucket(within: string, after: Teardown): Promise<Place> {
  const dir = join(within, 'bucket');
  await mkdir(dir);
  const url = await startVersitygw(dir, after);
  const client = new S3Client({
    endpoint: url,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: OWNER,
  });
  const readable = {
    Effect: 'Allow',
    Principal: '*',
    Action: 's3:GetObject',
    Resource: `arn:aws:s3:::${BUCKET}/*`,
  };
  const Policy = JSON.stringify({ Version: '2012-10-17', Statement: [readable] });
  await client.send(new PutBucketPolicyCommand({ Bucket: BUCKET, Policy }));
  client.destroy();
  const setting = bucketSetting(url, 'verify');
  return { name: `a bucket of ${VERSITYGW}`, dir, setting, url: `${url}/${BUCKET}/verify` };
}

async function checkPlace({ name, dir, setting, url }: Place): Promise<Row[]> {
  const bundle = await publish(dir, { LOG_STORAGE: setting, VERIFY_URL: url });
  const [entry] = bundle.sigstore_bundle.verificationMaterial.tlogEntries;
  const leaf = join(dir, 'leaf.json');
  await writeFile(leaf, Buffer.from(entry?.canonicalizedBody ?? '', 'base64'));
  const roots = JSON.parse(await fetchText(`${url}/trust_roots.json`)) as {
    transparency_logs: { environment: string; verifier_key: string }[];
  };
  const keyOf = (of: string) =>
    roots.transparency_logs.find(({ environment }) => environment === of)?.verifier_key ?? '';
  const read = (key: string) =>
    run(tool('check-log'), [`${url}/log/live/`, key, entry?.logIndex ?? '', leaf]);
  const audit = await run(process.execPath, [...PROGRAM, 'audit', '--verify-url', url]);
  return [
    accepting('tessera', `the public log in ${name}`, await read(keyOf('live')), [
      new RegExp(`^every entry and tile of ${LEAVES} leaves; leaf \\d+ is included$`, 'm'),
    ]),
    refusing('tessera', `the public log in ${name}, another key`, await read(keyOf('test'))),
    accepting('attest', `audit of ${name}`, audit, [new RegExp(`${LEAVES} entries`)]),
  ];
}

/** A service that publishes and ends. @returns the bundle of a submission in the middle */
async function publish(dir: string, env: Record<string, string>) {
  const data = join(dir, 'data');
  const service = await startUp(data, { ...env, LOG_LEVEL: 'error', BATCH_INTERVAL: '200ms' });
  try {
    const { live_key: key } = JSON.parse(await readFile(join(data, 'credentials.json'), 'utf8'));
    const headers = { authorization: `Bearer ${key}` };
    const ids: string[] = [];
    for (let sent = 0; sent < LEAVES; sent += AT_ONCE)
      ids.push(...(await submit(service.baseUrl, headers, sent)));
    const id = ids[LEAVES / 2] ?? '';
    await until(
      'all is stored',
      async () =>
        (await fetchText(`${env.VERIFY_URL}/log/live/checkpoint`)).split('\n')[1] === String(LEAVES) &&
        /"live"/.test(await fetchText(`${env.VERIFY_URL}/trust_roots.json`)),
    );
    return await until('there is the bundle', async () => {
      const answer = await fetch(`${service.baseUrl}/v1/attestations/${id}/bundle`, { headers });
      return answer.ok && ((await answer.json()) as Bundle);
    });
  } finally {
    await service.stop();
  }
}

/** Submits a batch; what is over the key's limit is sent again. @returns the ids */
function submit(baseUrl: string, headers: Record<string, string>, sent: number): Promise<string[]> {
  const items = Array.from({ length: AT_ONCE }, (_, i) => ({
    artifact: { sha256: Buffer.alloc(32, `${sent + i} `).toString('hex') },
    metadata: { schema: 'purl', purl: 'pkg:npm/a-test@1.0.0' },
    idempotency_key: `item-${sent + i}`,
  }));
  const request = {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ items }),
  };
  return until('the batch is created', async () => {
    const answer = await fetch(`${baseUrl}/v1/attestations:batch`, request);
    const { results = [] } = (await answer.json()) as { results?: { submission?: { id: string } }[] };
    const ids = results.flatMap(({ submission }) => submission?.id ?? []);
    return ids.length === AT_ONCE && ids;
  });
}
