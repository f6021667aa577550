// What others' programs make of our proofs, log and clients. `--help` says what is run and what is installed.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkClient, checkPastedLines, checkPublicLog, checkTimestamps } from './checks.js';
import { checkGeneratedClients } from './clients/check.js';
import { checkConformance } from './conformance/check.js';
import { checkChart, checkImage } from './deploy/checks.js';
import { checkEvidence } from './evidence-checks.js';
import { checkImages } from './image-checks.js';
import { checkManifest } from './manifest-check.js';
import { HELP, type Options, readOptions } from './options.js';
import { checkPolicies } from './policies/checks.js';
import { checkReceipts } from './receipt-checks.js';
import { type Row, tableOf } from './rows.js';
import { checkRpcs } from './rpc-checks.js';
import { type Check, chooseChecks, runAll } from './running.js';
import { checkExports } from './s3-checks.js';
import { openScene, type Scene } from './scene.js';
import { checkSigstore, checkStamps } from './sigstore-checks.js';
import { checkStoredLog } from './storage/log-checks.js';
import { checkRegister } from './storage/register-checks.js';
import { checkPrerequisites, installTools } from './tools.js';
import { checkTuf } from './tuf-checks.js';
import { checkKeyless, checkProof, checkTokens } from './verifiers/checks.js';
import { checkWitnesses } from './witness-checks.js';

/** The pasted lines come first: they write the files that the other checks read. */
const CHECKS: readonly Check<Scene>[] = [
  checkPastedLines,
  checkManifest,
  checkSigstore,
  checkStamps,
  checkTimestamps,
  checkTokens,
  checkProof,
  checkKeyless,
  checkPublicLog,
  checkClient,
  checkGeneratedClients,
  checkRpcs,
  checkConformance,
  checkExports,
  checkStoredLog,
  checkRegister,
  checkImages,
  checkPolicies,
  checkWitnesses,
  checkReceipts,
  checkEvidence,
  checkTuf,
  checkChart,
  checkImage,
];

try {
  const options = readOptions(process.argv.slice(2));
  if (options === undefined) console.log(HELP);
  else await interop(options);
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}

async function interop({ installOnly, keep, sources, only }: Options): Promise<void> {
  const checks = chooseChecks(CHECKS, only);
  if (only.length === 0) {
    console.log(
      'npm run interop needs Go, Java, jq and openssl, and installs foreign tools into .interop/ (--help)',
    );
    await checkPrerequisites();
    await installTools(sources, console.log);
    if (installOnly) return;
  }
  const dir = await mkdtemp(join(tmpdir(), 'attest-interop-'));
  try {
    const rows = await runChecks(checks, dir);
    console.log(tableOf(rows));
    if (rows.some(({ isRight }) => !isRight)) process.exitCode = 1;
  } finally {
    if (keep) console.log(`the bundles are in ${dir}`);
    else await rm(dir, { recursive: true, force: true });
  }
}

async function runChecks(checks: readonly Check<Scene>[], dir: string): Promise<Row[]> {
  const stops: (() => Promise<unknown>)[] = [];
  try {
    console.log('starting a service and attesting two files');
    return await runAll(checks, await openScene(dir, stops));
  } finally {
    for (const stop of stops) await stop();
  }
}
