/** Git destinations, objects and writes for tests. */
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import { DestinationKind, ExportDestinationSchema } from '../../../../gen/attestation/v1/exports_pb.js';
import {
  type DestinationContext,
  destinationMembers,
  type OpenDestination,
  type WriteControl,
  type WriteOutcome,
} from '../../../../src/server/exports/destinations/destination.js';
import { type GitOptions, openGit } from '../../../../src/server/exports/destinations/git/git.js';
import type { ExportObject } from '../../../../src/server/exports/destinations/object-store.js';

export const EXPORT_ID = 'exp_01KE8GAT4V6W8X0Y2Z4A6B8C0D';

type Members = MessageInitShape<typeof ExportDestinationSchema>;

/** The context of a destination with these members, in a temporary directory of its own until the test ends. */
export async function gitContext(
  test: Pick<Test, 'teardown'>,
  members: Members,
): Promise<DestinationContext> {
  const temporaryDirectory = await mkdtemp(join(tmpdir(), 'attest-git-test-'));
  test.teardown(() => rm(temporaryDirectory, { recursive: true, force: true }));
  return {
    destination: destinationMembers(
      create(ExportDestinationSchema, { kind: DestinationKind.GIT_REPO, ...members }),
    ),
    exportId: EXPORT_ID,
    projectId: 'prj_01KE8GAT4V6W8X0Y2Z4A6B8C0D',
    allowInsecure: true,
    ambientCredentials: [],
    temporaryDirectory,
  };
}

/** Opens a destination until the test ends. */
export async function openGitUntil(
  test: Pick<Test, 'teardown'>,
  context: DestinationContext,
  options: GitOptions = {},
): Promise<OpenDestination> {
  const opened = await openGit(context, { path: process.env.PATH, ...options });
  test.teardown(() => opened.close());
  return opened;
}

/** An object with this content. */
export function makeObject(name: string, content: string | Buffer, revision = 1): ExportObject {
  const bytes = Buffer.from(content);
  const sha256 = createHash('sha256').update(bytes).digest();
  const read = ({ start = 0, end = bytes.length } = {}) => Readable.from([bytes.subarray(start, end)]);
  return { name, contentType: 'application/x-ndjson', bytes: bytes.length, sha256, revision, read };
}

/** Writes as a worker whose lease is current, unless `isCurrent` says otherwise. */
export function write(
  opened: OpenDestination,
  object: ExportObject,
  { signal = new AbortController().signal, isCurrent = async () => true }: Partial<WriteControl> = {},
): Promise<WriteOutcome> {
  return opened.write(object, { signal, isCurrent });
}
