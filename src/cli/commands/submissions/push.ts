import type { Command } from 'commander';
import { type Cli, print, UsageError } from '../../cli.js';
import { addClientFlags, CLIENT_HELP, type ClientFlags } from '../../flags/client-flags.js';
import { parseDuration } from '../../flags/flag-values.js';
import { openClient } from '../../flags/open-client.js';
import { readBundleFile } from '../../input/bundle-file.js';
import { assertSubmissionId } from '../../input/submission-id.js';
import {
  addRegistryFlags,
  type BundleSource,
  downloadPushed,
  pushBundle,
  REGISTRY_HELP,
  type RegistryFlags,
} from '../../oci/images.js';
import { readPushedBundle } from '../../oci/pushed-bundle.js';
import { parseReference } from '../../oci/reference.js';

type Flags = ClientFlags &
  RegistryFlags & {
    bundle?: string;
    wait?: boolean;
    timeout: string;
    json?: boolean;
  };

const HELP = `
Attaches the Sigstore bundle to the image whose digest was submitted, as an OCI 1.1 referrer, and in registries without the referrers
API under the tag sha256-<hex>: \`oras discover\` lists it, \`cosign verify-attestation\` accepts it (docs/verifying.md). The bundle is
that of a file, a proof bundle or its Sigstore bundle, or else of a submission ID. A bundle about another digest is not pushed, and
one that is attached already not again.
${REGISTRY_HELP}
${CLIENT_HELP}

Examples:
  $ attest push oci://registry.example.com/app@sha256:<hex> sub_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T --wait
  $ attest push oci://ghcr.io/acme/app:1.2 --bundle app.bundle.json`;

/** `attest push`. */
export function addPush(program: Command, cli: Cli): void {
  addRegistryFlags(addClientFlags(program.command('push')))
    .argument('<image>', 'oci://registry/repository@sha256:<hex>')
    .argument('[id]', 'submission whose bundle is attached, sub_...')
    .option('--bundle <file>', 'attach the bundle in this file')
    .option('--wait', 'wait until the submission is witnessed')
    .option('--timeout <duration>', 'timeout of --wait, 1s to 30d', '10m')
    .option('--json', 'print a line of JSON')
    .addHelpText('after', HELP)
    .action((image: string, id: string | undefined, flags: Flags) => push(cli, image, id, flags));
}

async function push(cli: Cli, text: string, id: string | undefined, flags: Flags): Promise<void> {
  const timeoutMs = parseDuration('--timeout', flags.timeout, '1s', '30d');
  const reference = parseReference(text);
  const found = await findBundle(cli, id, flags, timeoutMs);
  const { name, referrer, wasThere } = await pushBundle(cli, reference, found, flags);
  const { submissionId } = found.bundle;
  if (flags.json) {
    const line = { image: name, referrer, was_there: wasThere, submission_id: submissionId };
    print(cli, JSON.stringify(line));
  } else print(cli, `${submissionId}  ${wasThere ? 'was attached' : 'attached'}  ${name}`);
}

async function findBundle(
  cli: Cli,
  id: string | undefined,
  { bundle: file, wait, ...flags }: Flags,
  timeoutMs: number,
): Promise<BundleSource> {
  if (file !== undefined && id === undefined) {
    if (wait) throw new UsageError('--wait is for a submission ID: a bundle is witnessed');
    return { source: file, bundle: readPushedBundle(await readBundleFile(file), file) };
  }
  if (id === undefined || file !== undefined) throw new UsageError('give either a submission ID or --bundle');
  assertSubmissionId(id);
  const client = openClient(cli, flags);
  if (wait) await client.attestations.waitUntilWitnessed(id, { timeoutMs });
  return downloadPushed(client, id);
}
