/** What the programs are given: two files that a running service attested, and all that it publishes about them. */
import { randomBytes } from 'node:crypto';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { SigstoreBundle } from '../../src/proof/bundle/sigstore-bundle.js';
import { openTimestampAuthority } from '../../src/server/timestamp-authority/timestamp-authority.js';
import { attest, startUp, type Up } from '../support/servers/up.js';
import { until } from '../support/until.js';

/** A bundle as the API answers it, as far as it is looked at here. */
export type Bundle = {
  submission: { id: string };
  sigstore_bundle: SigstoreBundle;
  checkpoints: { tree_size: number }[];
  witnesses: { name: string; tree_size: number }[];
};

/**
 * `dir` holds the files that the lines of docs/verifying.md name; `laterDir` the same, but the bundle's only witness
 * attested to a later checkpoint than the batch's.
 */
export type Scene = {
  service: Up;
  apiKey: string;
  projectId: string;
  dir: string;
  laterDir: string;
  bundle: Bundle;
  other: Bundle;
};

type Stops = (() => Promise<unknown>)[];

const PUBLISHED = ['trust_roots.json', 'trusted_root.json', 'report.json'];

/** Starts a service and attests two files; what has to be stopped is put in front of `stops`. */
export async function openScene(dir: string, stops: Stops): Promise<Scene> {
  const slow = await startSlowAuthority(join(dir, 'authority'), stops);
  const service = await startUp(join(dir, 'data'), {
    WITNESSES: JSON.stringify([slow.witness]),
    LOG_LEVEL: 'error',
  });
  stops.unshift(() => service.stop());
  const credentials = JSON.parse(await readFile(join(dir, 'data/credentials.json'), 'utf8'));
  const { live_key: apiKey, project_id: projectId } = credentials;
  const id = await submit(dir, 'report.json');
  const bundle = await fetchBundle(service, apiKey, id);
  const other = await fetchBundle(service, apiKey, await submit(dir, 'other.json'));
  slow.open();
  const later = await until('the slow authority has vouched for a later checkpoint', async () => {
    const found = await fetchBundle(service, apiKey, id);
    return found.witnesses.some(({ name }) => name === 'slow') && found;
  });
  for (const name of PUBLISHED.slice(0, 2)) {
    await writeFile(join(dir, name), await fetchText(`${service.verifyUrl}/${name}`));
  }
  const laterDir = join(dir, 'later');
  await mkdir(laterDir);
  for (const name of PUBLISHED) await cp(join(dir, name), join(laterDir, name));
  const witnesses = later.witnesses.filter(({ name }) => name === 'slow');
  await writeFile(join(laterDir, 'bundle.json'), JSON.stringify({ ...later, witnesses }));
  await writeFile(join(dir, 'bundle.json'), JSON.stringify(bundle));
  if (witnesses[0]?.tree_size === later.checkpoints[0]?.tree_size) throw new Error('no witness came later');
  return { service, apiKey, projectId, dir, laterDir, bundle, other };
}

/** The text that an address answers with. Throws when it answers with an error. */
export async function fetchText(url: string, headers: Record<string, string> = {}): Promise<string> {
  const answer = await fetch(url, { headers });
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  return answer.text();
}

async function submit(dir: string, name: string): Promise<string> {
  const path = join(dir, name);
  await writeFile(path, JSON.stringify({ name, salt: randomBytes(8).toString('hex') }));
  return attest('submit', path, '--wait', '--quiet', '--data-dir', join(dir, 'data')).trim();
}

async function fetchBundle({ baseUrl }: Up, apiKey: string, id: string): Promise<Bundle> {
  const headers = { authorization: `Bearer ${apiKey}` };
  return JSON.parse(await fetchText(`${baseUrl}/v1/attestations/${id}/bundle`, headers));
}

/** A time-stamping authority of another name that is out of order until it is told to `open`. */
async function startSlowAuthority(dir: string, stops: Stops) {
  const authority = await openTimestampAuthority({ dir, clock: () => new Date(), randomBytes });
  let isOpen = false;
  const server = createServer(async (request, response) => {
    const answer = await authority.respond(await buffer(request));
    const headers = { 'content-type': 'application/timestamp-reply' };
    if (isOpen) response.writeHead(200, headers).end(answer);
    else response.writeHead(503).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stops.unshift(async () => server.close());
  const { port } = server.address() as AddressInfo;
  const witness = {
    name: 'slow',
    kind: 'rfc3161',
    url: `http://127.0.0.1:${port}`,
    required: false,
    operator: 'interop',
    chain_pem: authority.certChainPem.join(''),
  };
  return { witness, open: () => (isOpen = true) };
}
