import { fromHex, fromUtf8 } from '../../../proof/bytes/encoding.js';
import { manifestEnvelope, manifestStatement } from '../../../proof/export/manifest.js';
import { createDsseSigners } from '../../attestations/signing/dsse-signers.js';
import { type HeldKey, openStatementKeys } from '../../attestations/signing/statement-keys.js';
import type { Pool } from '../../database/connect.js';
import { readDatabaseMs } from '../../database/session.js';
import type { Exports } from '../../exports/ship/export-stage.js';
import type { Secrets } from '../../keys/secrets.js';
import type { LogCache } from '../../log/log-cache.js';

/** Signs the manifests of exports, with the keys that sign statements. */
type ManifestSigner = {
  sign: Exports['signManifest'];
  /** Makes the DSSE envelope of an in-toto statement with the key of an environment, a proto number. */
  signStatement(environment: number, statement: Uint8Array): Promise<Uint8Array>;
  close(): Promise<void>;
};

/** A signer that opens the keys when it is first used: a signing process that is away delays manifests only. */
export function createManifestSigner(
  pool: Pool,
  logCache: LogCache,
  dsseKeys: Secrets['dsse'],
): ManifestSigner {
  const stops: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const stop of stops.splice(0)) await stop();
  };
  let opening: Promise<HeldKey[]> | undefined;
  const open = () => {
    opening ??= openStatementKeys(dsseKeys, { add: (stop) => void stops.push(stop) }).catch(
      async (error: unknown) => {
        opening = undefined;
        await close();
        throw error;
      },
    );
    return opening;
  };
  const signStatement = async (environment: number, statement: Uint8Array) => {
    const nowMs = await readDatabaseMs(pool);
    const { signers } = createDsseSigners(await open(), { logCache, databaseMs: () => nowMs });
    const { sign } = await signers.get(environment);
    const { signature } = await sign(fromUtf8(statement));
    return manifestEnvelope(statement, fromHex(signature));
  };
  return {
    sign: async (environment, fields) => signStatement(environment, manifestStatement(fields)),
    signStatement,
    close,
  };
}
