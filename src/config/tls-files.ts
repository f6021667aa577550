import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { InvalidValue } from './invalid-value.js';
import { readSettingFile } from './setting-files.js';
import type { Settings, SettingType } from './settings.js';

/** Paths of the certificate chain and private key in PEM; both are reloaded when they change. */
export type TlsFiles = { readonly certFile: string; readonly keyFile: string };

/** Reads TLS_CERT_FILE and TLS_KEY_FILE. Reports a problem if only one is set or they are not a valid pair. */
export function readTlsFiles(settings: Settings, path: SettingType<string>): TlsFiles | undefined {
  const certFile = settings.find('TLS_CERT_FILE', path);
  const keyFile = settings.find('TLS_KEY_FILE', path);
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) {
    const name = certFile === undefined ? 'TLS_CERT_FILE' : 'TLS_KEY_FILE';
    settings.report({ name, problem: 'is not set while the other is', expected: 'the path of a PEM file' });
    return undefined;
  }
  try {
    readTlsPair({ certFile, keyFile }, Date.now());
  } catch (error) {
    if (!(error instanceof InvalidValue)) throw error;
    const expected = 'files in PEM with a certificate chain and its private key';
    const problem = `are wrong (${error.message})`;
    settings.report({ name: 'TLS_CERT_FILE and TLS_KEY_FILE', problem, expected });
  }
  return { certFile, keyFile };
}

/** Reads certificate and key. Throws InvalidValue if they do not match or the certificate is not valid at `nowMs`. */
export function readTlsPair({ certFile, keyFile }: TlsFiles, nowMs: number): { cert: string; key: string } {
  const cert = readSettingFile(certFile);
  const key = readSettingFile(keyFile);
  let leaf: X509Certificate;
  let isPair: boolean;
  try {
    leaf = new X509Certificate(cert);
    // OpenSSL accepts a certificate and a key of different algorithms.
    isPair = leaf.checkPrivateKey(createPrivateKey(key));
    createSecureContext(isPair ? { cert, key } : {});
  } catch {
    throw new InvalidValue('they cannot be read');
  }
  if (!isPair) throw new InvalidValue('the key does not match the certificate');
  const { validFrom, validTo } = leaf;
  if (Date.parse(validTo) < nowMs) throw new InvalidValue(`the certificate expired on ${validTo}`);
  if (Date.parse(validFrom) > nowMs)
    throw new InvalidValue(`the certificate is not valid before ${validFrom}`);
  return { cert, key };
}
