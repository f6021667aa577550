import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AttestationService } from '../../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../../gen/attestation/v1/batches_pb.js';
import { ExportService } from '../../../gen/attestation/v1/exports_pb.js';
import { ScittService } from '../../../gen/attestation/v1/scitt_pb.js';
import { InfoService } from '../../../gen/attestation/v1/service_pb.js';
import { TokenService } from '../../../gen/attestation/v1/tokens_pb.js';
import { WebhookService } from '../../../gen/attestation/v1/webhooks_pb.js';
import { renderSite } from './site.js';

const SERVICES = [
  AttestationService,
  BatchService,
  ExportService,
  ScittService,
  InfoService,
  TokenService,
  WebhookService,
];

/** Writes the files of the documentation into `files/` of the folder `built`, from `root`, where Vite put its scripts and styles. */
export function writeSite(root: string, built: string): void {
  const out = join(root, built, 'files');
  const rpcs = new Map(
    SERVICES.flatMap(({ typeName, methods }) =>
      methods.map((method) => [`${typeName}/${method.name}`, method] as const),
    ),
  );
  rmSync(out, { recursive: true, force: true });
  cpSync(join(root, 'docs/clients'), join(out, 'docs/clients'), { recursive: true });
  cpSync(join(root, 'docs/pictures'), join(out, 'docs/pictures'), {
    recursive: true,
    filter: (path) => !path.endsWith('.png'),
  });
  const shell = readFileSync(join(root, built, 'index.html'), 'utf8');
  for (const [path, text] of renderSite({ root, shell, rpcs })) {
    mkdirSync(dirname(join(out, path)), { recursive: true });
    writeFileSync(join(out, path), text);
  }
}
