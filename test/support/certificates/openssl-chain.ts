/** Certificate chains that openssl issues, and openssl's own verdict on a chain. */
import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toPem } from '../../../src/proof/asn1/pem.js';
import { OPENSSL } from '../foreign/openssl.js';

/** `key` are arguments of `openssl genpkey`, `signing` those of `openssl x509` that choose hash and padding. */
export type ChainAlgorithm = { key: readonly string[]; signing: readonly string[] };

const EXTENSIONS = `
[root]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[intermediate]
basicConstraints = critical,CA:true,pathlen:0
keyUsage = critical,keyCertSign
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
certificatePolicies = critical,1.3.6.1.4.1.32473.1
[leaf]
basicConstraints = critical,CA:false
keyUsage = critical,digitalSignature
extendedKeyUsage = critical,timeStamping
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = critical,email:stamps@example.com
`;

/**
 * A chain of three in DER, leaf first, valid for 30 days from now. Files are written to `dir`; chains of one folder with
 * the same `key` share their keys.
 */
export function makeOpensslChain(dir: string, { key, signing }: ChainAlgorithm): Uint8Array[] {
  const run = (...args: string[]) => execFileSync(OPENSSL, args, { cwd: dir, stdio: 'pipe' });
  writeFileSync(join(dir, 'extensions.cnf'), EXTENSIONS);
  const issue = (name: string, issuer: string) => {
    const keyFile = (of: string) => `${of}-${key.join('').replace(/\W/g, '')}.key`;
    if (!existsSync(join(dir, keyFile(name)))) run('genpkey', ...key, '-out', keyFile(name));
    run('pkey', '-in', keyFile(name), '-pubout', '-out', `${name}.pub`);
    const subject = ['-new', '-subj', `/C=DE/O=Foreign, Inc./CN=${name}`, '-force_pubkey', `${name}.pub`];
    const selfSigned = ['-signkey', keyFile(name)];
    const signer = issuer === name ? selfSigned : ['-CA', `${issuer}.pem`, '-CAkey', keyFile(issuer)];
    const extensions = ['-extfile', 'extensions.cnf', '-extensions', name];
    run('x509', ...subject, ...signer, ...signing, ...extensions, '-days', '30', '-out', `${name}.pem`);
    return run('x509', '-in', `${name}.pem`, '-outform', 'DER');
  };
  const root = issue('root', 'root');
  const intermediate = issue('intermediate', 'root');
  return [issue('leaf', 'intermediate'), intermediate, root];
}

/** Whether `openssl verify` accepts a chain (DER, leaf first) whose last certificate is trusted, at this time. */
export function opensslAccepts(dir: string, chain: readonly Uint8Array[], at: Date): boolean {
  const [leaf, ...issuers] = chain.map((der) => toPem('CERTIFICATE', der));
  writeFileSync(join(dir, 'leaf.pem'), leaf ?? '');
  writeFileSync(join(dir, 'untrusted.pem'), issuers.slice(0, -1).join(''));
  writeFileSync(join(dir, 'trusted.pem'), issuers.at(-1) ?? '');
  const untrusted = issuers.length > 1 ? ['-untrusted', 'untrusted.pem'] : [];
  const trust = ['-partial_chain', '-trusted', 'trusted.pem', ...untrusted];
  const time = ['-attime', String(Math.floor(at.getTime() / 1000))];
  try {
    // Level 0: weak algorithms are not what is compared.
    const options = ['-auth_level', '0', '-policy_check', ...time, ...trust];
    execFileSync(OPENSSL, ['verify', ...options, 'leaf.pem'], { cwd: dir, stdio: 'pipe' });
    return true;
  } catch {
    return false;
  }
}
