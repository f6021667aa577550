/** Azurite: Microsoft's emulator of Azure Blob Storage, as a process of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  BlobServiceClient,
  ContainerSASPermissions,
  generateBlobSASQueryParameters,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import type { Test } from 'tap';
import type { TlsFiles } from '../../../src/config/tls-files.js';
import { findFreePort } from '../servers/free-port.js';
import { until } from '../until.js';

/** The account that every Azurite has; its key is public. */
export const AZURITE_ACCOUNT = 'devstoreaccount1';
const KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

export type Azurite = {
  port: number;
  /** The account's URL. */
  url: string;
  credential: StorageSharedKeyCredential;
  /** The emulator as the owner of the account sees it, without TLS. */
  owner: BlobServiceClient;
  /** A shared access signature of a container, for an hour from `startsOn`, by default of now. */
  sas(container: string, permissions?: string, startsOn?: Date): string;
};

/** Starts an emulator until the test ends; with `tls` it speaks https, and takes tokens of Entra. */
export async function startAzurite(t: Pick<Test, 'teardown'>, tls?: TlsFiles): Promise<Azurite> {
  const location = await mkdtemp(join(tmpdir(), 'azurite-'));
  const port = await findFreePort();
  const program = createRequire(import.meta.url).resolve('azurite/dist/src/blob/main.js');
  const flags = ['--silent', '--skipApiVersionCheck', '--disableTelemetry'];
  const secure = tls ? ['--cert', tls.certFile, '--key', tls.keyFile, '--oauth', 'basic'] : [];
  const where = ['--blobHost', '127.0.0.1', '--blobPort', String(port), '--location', location];
  const child = spawn(process.execPath, [program, ...where, ...flags, ...secure], { stdio: 'ignore' });
  t.teardown(async () => {
    if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit');
    await rm(location, { recursive: true, force: true });
  });
  await until('Azurite listens', () => isOpen(port));
  const credential = new StorageSharedKeyCredential(AZURITE_ACCOUNT, KEY);
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${port}/${AZURITE_ACCOUNT}`;
  return {
    port,
    url,
    credential,
    owner: new BlobServiceClient(url, credential),
    sas: (containerName, permissions = 'rcw', startsOn = new Date()) => {
      const expiresOn = new Date(startsOn.getTime() + 3_600_000);
      const terms = { containerName, permissions: ContainerSASPermissions.parse(permissions), expiresOn };
      return generateBlobSASQueryParameters(terms, credential).toString();
    },
  };
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
