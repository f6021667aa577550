/** The part of `npm run build` that writes the pages of `/docs`, into the folder of the scripts and styles that Vite built for them. */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AttestationService } from '../../gen/attestation/v1/attestations_pb.js';
import { BatchService } from '../../gen/attestation/v1/batches_pb.js';
import { ExportService } from '../../gen/attestation/v1/exports_pb.js';
import { ScittService } from '../../gen/attestation/v1/scitt_pb.js';
import { InfoService } from '../../gen/attestation/v1/service_pb.js';
import { TokenService } from '../../gen/attestation/v1/tokens_pb.js';
import { WebhookService } from '../../gen/attestation/v1/webhooks_pb.js';
import { renderSite } from './site/site.js';

const SERVICES = [
  AttestationService,
  BatchService,
  ExportService,
  ScittService,
  InfoService,
  TokenService,
  WebhookService,
];

const root = fileURLToPath(new URL('../..', import.meta.url));
const built = join(root, 'dist/web/docs');
const out = join(built, 'files');
const rpcs = new Map(
  SERVICES.flatMap(({ typeName, methods }) =>
    methods.map((method) => [`${typeName}/${method.name}`, method] as const),
  ),
);

rmSync(out, { recursive: true, force: true });
cpSync(join(root, 'docs/clients'), join(out, 'docs/clients'), { recursive: true });
const shell = readFileSync(join(built, 'index.html'), 'utf8');
for (const [path, text] of renderSite({ root, shell, rpcs })) {
  mkdirSync(dirname(join(out, path)), { recursive: true });
  writeFileSync(join(out, path), text);
}
