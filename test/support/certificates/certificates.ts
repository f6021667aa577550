/** Self-signed certificates by openssl. */
import { execFile } from 'node:child_process';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TlsFiles } from '../../../src/config/tls-files.js';
import { OPENSSL } from '../foreign/openssl.js';

const KEYS = { ec: ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'], rsa: ['rsa:2048'] };

export type CertificateOptions = {
  /** 1 by default; one of -1 expired yesterday. */
  days?: number;
  key?: keyof typeof KEYS;
};

/** Writes `<name>.pem` and `<name>-key.pem` with the name as their subject. */
export async function makeCertificate(
  dir: string,
  name: string,
  { days = 1, key = 'ec' }: CertificateOptions = {},
): Promise<TlsFiles> {
  const files = { certFile: join(dir, `${name}.pem`), keyFile: join(dir, `${name}-key.pem`) };
  const openssl = (...args: string[]) => promisify(execFile)(OPENSSL, args);
  const request = join(dir, `${name}.csr`);
  const subject = ['-subj', `/CN=${name}`, '-keyout', files.keyFile, '-out', request];
  await openssl('req', '-new', '-newkey', ...KEYS[key], '-nodes', ...subject);
  const validity = ['-days', String(days), '-out', files.certFile];
  await openssl('x509', '-req', '-in', request, '-signkey', files.keyFile, ...validity);
  return files;
}

/** Puts the content of one pair in the place of another. */
export async function install(from: TlsFiles, to: TlsFiles): Promise<void> {
  await copyFile(from.keyFile, to.keyFile);
  await copyFile(from.certFile, to.certFile);
}
