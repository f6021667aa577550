/** What policies are given: results that jobs of two repositories attested by their tokens, at a running service. */
import { mkdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Test } from 'tap';
import { makeServerTls } from '../../support/certificates/server-tls.js';
import { githubClaims, type Issuer, startIssuer } from '../../support/identities/issuer.js';
import { putImage } from '../../support/registries/image.js';
import { attest, startUp, type Up } from '../../support/servers/up.js';
import { fetchText } from '../scene.js';
import { paste } from '../tools.js';

/** What submissions state. A private one has no result in its statement; one is edited after it was signed, one is cut off. */
const STATED: Readonly<Record<ProofName, { result: 'PASSED' | 'FAILED'; repository?: string }>> = {
  passed: { result: 'PASSED', repository: 'acme/app' },
  failed: { result: 'FAILED', repository: 'acme/app' },
  foreign: { result: 'PASSED', repository: 'evil/fork' },
  keyed: { result: 'PASSED' },
  private: { result: 'PASSED', repository: 'acme/app' },
  edited: { result: 'FAILED', repository: 'acme/app' },
  cut: { result: 'PASSED', repository: 'acme/app' },
};

export type ProofName = 'passed' | 'failed' | 'foreign' | 'keyed' | 'private' | 'edited' | 'cut';

/** What the line that submits has beyond a private submission, or one whose bundle is edited before it is attached. */
const OMITTED: Readonly<Partial<Record<ProofName, string | RegExp>>> = {
  private: '--oci "$IMAGE" --public --push',
  edited: '--push',
  cut: '--push',
};

/** Names of proofs. */
export const PROOFS = Object.keys(STATED) as ProofName[];

/** The folder with the files that docs/policies.md names, and an image that the statement is about. */
export type Proof = { dir: string; image: string };

/** The proofs, and what the page's rules name otherwise: the project, and the issuer of the tokens. */
export type Proofs = { of: Record<ProofName, Proof>; project: string; issuer: string };

type Owner = Pick<Test, 'teardown'>;
/** The service, its stored key, the issuer that it trusts, and the line that submits. */
type Place = { line: string; service: Up; apiKey: string; issuer: Issuer };

/**
 * Starts a service that trusts an issuer, and attests a file and an image with each result by the line of a page, each in a folder.
 * Attaches the public bundles to the images of a registry.
 */
export async function openProofs(owner: Owner, dir: string, host: string, line: string): Promise<Proofs> {
  const { tls, caFile } = await makeServerTls(owner);
  const issuer = await startIssuer(owner, 'RS256', tls);
  const data = join(dir, 'data');
  const service = await startUp(data, {
    PRIVATE_ISSUERS: issuer.url,
    NODE_EXTRA_CA_CERTS: caFile,
    LOG_LEVEL: 'error',
  });
  owner.teardown(() => service.stop());
  for (const repository of ['acme/app', 'evil/fork'])
    attest('trust', 'add', '--github', repository, '--issuer', issuer.url, '--data-dir', data);
  const credentials = JSON.parse(await readFile(join(data, 'credentials.json'), 'utf8'));
  const { project_id: project, live_key: apiKey } = credentials;
  const published = await fetchPublished(service);
  const of: Partial<Record<ProofName, Proof>> = {};
  for (const name of PROOFS) {
    const image = `${host}/acme/app@${await putImage({ host }, 'acme/app', name)}`;
    const proof = { dir: join(dir, name), image };
    await writeFiles(proof.dir, { ...published, 'app.tgz': name, 'report.xml': reportOf(name) });
    await submit(proof, name, { line, service, apiKey, issuer });
    of[name] = proof;
  }
  return { of: of as Proofs['of'], project, issuer: issuer.url };
}

/** A report of tests, one of which may have failed. */
function reportOf(name: ProofName): string {
  const outcome = STATED[name].result === 'FAILED' ? '<failure/>' : '';
  return `<testsuite name="cart" tests="1"><testcase classname="cart" name="counts">${outcome}</testcase></testsuite>`;
}

async function submit({ dir, image }: Proof, name: ProofName, place: Place): Promise<void> {
  const { line, service } = place;
  const env = { ATTEST_URL: service.baseUrl, IMAGE: image, ...(await credential(name, place)) };
  await pasteOrThrow(line.replace(OMITTED[name] ?? '', ''), dir, env);
  const path = join(dir, 'app.bundle.json');
  if (name === 'cut') await truncate(path, 1000);
  if (name !== 'edited') return;
  await edit(path);
  await pasteOrThrow('attest push "oci://$IMAGE" --bundle app.bundle.json', dir, env);
}

/** The token of a job, or the stored key. */
async function credential(
  name: ProofName,
  { service, issuer, apiKey }: Place,
): Promise<Record<string, string>> {
  const { repository } = STATED[name];
  if (repository === undefined) return { ATTEST_API_KEY: apiKey };
  const sub = `repo:${repository}:ref:refs/heads/main`;
  const claims = githubClaims(issuer.url, service.baseUrl, { repository, sub });
  return { ATTEST_ID_TOKEN: await issuer.sign(claims) };
}

async function pasteOrThrow(script: string, dir: string, env: Record<string, string>): Promise<void> {
  const { code, output } = await paste(script, dir, env);
  if (code !== 0) throw new Error(`${script} ended with ${code}:\n${output}`);
}

/** Makes a result that failed one that passed. */
async function edit(path: string): Promise<void> {
  const bundle = JSON.parse(await readFile(path, 'utf8'));
  const envelope = bundle.sigstore_bundle.dsseEnvelope;
  const text = Buffer.from(envelope.payload, 'base64').toString();
  envelope.payload = Buffer.from(text.replace('FAILED', 'PASSED')).toString('base64');
  await writeFile(path, JSON.stringify(bundle));
}

/** What the service publishes, under the names of the page. */
async function fetchPublished({ verifyUrl }: Up): Promise<Record<string, string>> {
  const roots = await fetchText(`${verifyUrl}/trust_roots.json`);
  const keys: { environment: string; public_key_pem: string }[] = JSON.parse(roots).dsse_signing_keys;
  return {
    'trust_roots.json': roots,
    'trusted_root.json': await fetchText(`${verifyUrl}/trusted_root.json`),
    'dsse.pem': keys.find(({ environment }) => environment === 'live')?.public_key_pem ?? '',
  };
}

async function writeFiles(dir: string, files: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(dir, { recursive: true });
  for (const [name, content] of Object.entries(files)) await writeFile(join(dir, name), content);
}
