/** A server's certificate by a CA of the test's own, which `openssl` makes. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { openssl } from '../witnesses/openssl-tsa.js';

export type ServerTls = {
  tls: { key: Buffer; cert: Buffer };
  /** The CA's certificate, for `NODE_EXTRA_CA_CERTS`. */
  caFile: string;
};

/**
 * Makes both, until the test ends. `altName` is what the certificate is for, as OpenSSL spells it; with -1 day it has
 * expired yesterday.
 */
export async function makeServerTls(
  test: Pick<Test, 'teardown'>,
  altName = 'IP:127.0.0.1',
  days = 30,
): Promise<ServerTls> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-tls-'));
  test.teardown(() => rm(dir, { recursive: true, force: true }));
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const ca = ['-x509', '-days', '30', '-subj', '/CN=A test CA', '-keyout', 'ca.key', '-out', 'ca.pem'];
  await openssl(dir, 'req', ...key, ...ca);
  await openssl(
    dir,
    'req',
    ...key,
    '-subj',
    '/CN=A test server',
    '-keyout',
    'server.key',
    '-out',
    'server.csr',
  );
  await writeFile(join(dir, 'san.cnf'), `subjectAltName=${altName}\n`);
  const signing = [
    '-CA',
    'ca.pem',
    '-CAkey',
    'ca.key',
    '-CAcreateserial',
    '-extfile',
    'san.cnf',
    '-days',
    String(days),
  ];
  await openssl(dir, 'x509', '-req', '-in', 'server.csr', ...signing, '-out', 'server.pem');
  const read = (name: string) => readFile(join(dir, name));
  return {
    tls: { key: await read('server.key'), cert: await read('server.pem') },
    caFile: join(dir, 'ca.pem'),
  };
}
