/** Settings that name files whose content is checked at start. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { InvalidValue, type Kind, type Settings } from './settings.js';

/** Certificate and key for serving TLS, as paths: they are read again when they change. */
export type TlsFiles = { readonly certFile: string; readonly keyFile: string };

const MAX_FILE_BYTES = 1024 * 1024;

/** The text of a file of at most 1 MiB; throws InvalidValue when it cannot be had. */
export function readSettingFile(path: string): string {
  try {
    if (statSync(path).size > MAX_FILE_BYTES) throw new InvalidValue(`${path} is larger than 1 MiB`);
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof InvalidValue) throw error;
    const code = error instanceof Error && 'code' in error ? error.code : 'unknown error';
    throw new InvalidValue(`${path} cannot be read: ${code}`);
  }
}

/** A directory that is there. */
export const directory: Kind<string> = {
  expected: 'a directory',
  parse: (text) => {
    if (!statSync(text, { throwIfNoEntry: false })?.isDirectory()) throw new InvalidValue('it is not there');
    return text;
  },
};

/** TLS_CERT_FILE and TLS_KEY_FILE: both or neither, and they must fit together. */
export function readTlsFiles(settings: Settings, path: Kind<string>): TlsFiles | undefined {
  const certFile = settings.find('TLS_CERT_FILE', path);
  const keyFile = settings.find('TLS_KEY_FILE', path);
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) {
    const name = certFile === undefined ? 'TLS_CERT_FILE' : 'TLS_KEY_FILE';
    settings.report({ name, problem: 'is not set while the other is', expected: 'a path of a PEM file' });
    return undefined;
  }
  const problem = findTlsProblem({ certFile, keyFile });
  if (problem !== undefined) {
    const expected = 'files in PEM with a certificate chain and its private key';
    settings.report({ name: 'TLS_CERT_FILE and TLS_KEY_FILE', problem: `are wrong (${problem})`, expected });
  }
  return { certFile, keyFile };
}

function findTlsProblem({ certFile, keyFile }: TlsFiles): string | undefined {
  try {
    const cert = readSettingFile(certFile);
    const key = readSettingFile(keyFile);
    // OpenSSL itself takes a certificate and a key of different algorithms side by side.
    const isPair = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
    return isPair && createSecureContext({ cert, key }) ? undefined : 'they do not belong together';
  } catch (error) {
    return error instanceof InvalidValue ? error.message : 'they cannot be read';
  }
}
