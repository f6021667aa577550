/** A foreign time-stamping authority: `openssl ts -reply` over a chain of three that `openssl x509` made, and an HTTP server around it. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { OPENSSL } from '../foreign/openssl.js';

const run = promisify(execFile);

/** `curve` is openssl's name; no curve is RSA with 2048 bits. */
export type OpensslTsaOptions = {
  dir: string;
  curve?: 'P-256' | 'P-384';
  signerDigest: 'sha256' | 'sha384' | 'sha512';
  essDigest?: 'sha1' | 'sha256' | 'sha512';
  /** Digits after the second in genTime. */
  precision?: number;
};

export type OpensslTsa = {
  /** DER, leaf first. */
  chain: Uint8Array[];
  policyOid: string;
  otherPolicyOid: string;
  reply(request: Uint8Array): Promise<Uint8Array>;
};

/** Runs openssl in `dir`; the answer is what it printed, on both streams. Rejects with what it printed when it fails. */
export async function openssl(dir: string, ...args: string[]): Promise<string> {
  const { stdout, stderr } = await run(OPENSSL, args, { cwd: dir });
  return `${stdout}${stderr}`;
}

/** Makes root, intermediate and time-stamping certificate in `dir`, an empty folder of its own. */
export async function makeOpensslTsa(options: OpensslTsaOptions): Promise<OpensslTsa> {
  const { dir } = options;
  const [policyOid, otherPolicyOid] = ['1.3.6.1.4.1.32473.1', '1.3.6.1.4.1.32473.2'];
  await writeFile(join(dir, 'tsa.cnf'), configuration(options, policyOid, otherPolicyOid));
  await makeCertificate(options, 'root', undefined);
  await makeCertificate(options, 'intermediate', 'root');
  await makeCertificate(options, 'tsa', 'intermediate');
  const names = ['tsa', 'intermediate', 'root'];
  await writeFile(join(dir, 'intermediates.pem'), await readFile(join(dir, 'intermediate.pem')));
  const chain = await Promise.all(names.map((name) => readFile(join(dir, `${name}.der`))));
  return { chain, policyOid, otherPolicyOid, reply: (request) => reply(dir, request) };
}

/** Serves the authority as RFC 3161, section 3.4 says, on a free port of the loopback address. */
export function serveTsa(
  tsa: OpensslTsa,
  observe: (request: IncomingMessage) => void = () => {},
): Promise<{ url: string; close: () => Promise<void> }> {
  return serve(async (request, response) => {
    observe(request);
    if (request.method !== 'POST' || request.headers['content-type'] !== 'application/timestamp-query') {
      response.writeHead(400).end();
      return;
    }
    const answer = await tsa.reply(await buffer(request));
    response.writeHead(200, { 'content-type': 'application/timestamp-reply' }).end(answer);
  });
}

/** A server on a free port; closing it drops open connections. */
export async function serve(listener: RequestListener): Promise<{ url: string; close: () => Promise<void> }> {
  const server: Server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  };
  return { url: `http://127.0.0.1:${address.port}/`, close };
}

async function reply(dir: string, request: Uint8Array): Promise<Uint8Array> {
  const name = randomUUID();
  const [query, answer] = [join(dir, `${name}.tsq`), join(dir, `${name}.tsr`)];
  await writeFile(query, request);
  await openssl(dir, 'ts', '-reply', '-config', 'tsa.cnf', '-queryfile', query, '-out', answer);
  const bytes = await readFile(answer);
  await Promise.all([rm(query), rm(answer)]);
  return bytes;
}

async function makeCertificate(
  options: OpensslTsaOptions,
  name: string,
  issuer: string | undefined,
): Promise<void> {
  const { dir, curve } = options;
  const algorithm = curve
    ? ['-algorithm', 'EC', '-pkeyopt', `ec_paramgen_curve:${curve}`]
    : ['-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048'];
  await openssl(dir, 'genpkey', ...algorithm, '-out', `${name}.key`);
  const subject = `/C=DE/O=Foreign, Inc./CN=Foreign ${name}`;
  await openssl(
    dir,
    'req',
    '-new',
    '-key',
    `${name}.key`,
    '-subj',
    subject,
    '-out',
    `${name}.csr`,
    '-config',
    'tsa.cnf',
  );
  const signer = issuer
    ? ['-CA', `${issuer}.pem`, '-CAkey', `${issuer}.key`, '-CAcreateserial']
    : ['-signkey', 'root.key'];
  const extensions = ['-extfile', 'tsa.cnf', '-extensions', `${name}_extensions`];
  await openssl(
    dir,
    'x509',
    '-req',
    '-in',
    `${name}.csr`,
    ...signer,
    ...extensions,
    '-days',
    '30',
    '-out',
    `${name}.pem`,
  );
  await openssl(dir, 'x509', '-in', `${name}.pem`, '-outform', 'DER', '-out', `${name}.der`);
}

function configuration(options: OpensslTsaOptions, policyOid: string, otherPolicyOid: string): string {
  return `
[req]
distinguished_name = name
[name]
[root_extensions]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[intermediate_extensions]
basicConstraints = critical,CA:true,pathlen:0
keyUsage = critical,keyCertSign
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[tsa_extensions]
basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,timeStamping
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[tsa]
default_tsa = foreign
[foreign]
serial = ${options.dir}/serial
crypto_device = builtin
signer_cert = ${options.dir}/tsa.pem
certs = ${options.dir}/intermediates.pem
signer_key = ${options.dir}/tsa.key
signer_digest = ${options.signerDigest}
default_policy = ${policyOid}
other_policies = ${otherPolicyOid}
digests = sha256, sha384, sha512
accuracy = secs:1
clock_precision_digits = ${options.precision ?? 0}
ordering = no
tsa_name = yes
ess_cert_id_chain = no
ess_cert_id_alg = ${options.essDigest ?? 'sha256'}
`;
}
