/** Checks of other services: NATS, witnesses. */
import { createHash, randomBytes } from 'node:crypto';
import { WitnessKind } from '../../../../gen/attestation/v1/bundle_pb.js';
import type { Config } from '../../../config/config.js';
import type { EvmConfig } from '../../../config/witnesses/evm.js';
import type { LogWitnessConfig } from '../../../config/witnesses/log-witness.js';
import type { OpenTimestampsConfig } from '../../../config/witnesses/opentimestamps.js';
import type { WitnessConfig } from '../../../config/witnesses/witnesses.js';
import { QUEUE_PREFIX } from '../../jobs/job.js';
import { connectNats } from '../../queue/connection.js';
import { natsOptions, streamName } from '../../queue/jetstream.js';
import { findStreamServers, type StreamServers } from '../../queue/stream.js';
import { boundedRequest } from '../../witnessing/clients/bounded-request.js';
import { evmAccount } from '../../witnessing/clients/evm/account.js';
import { jsonRpcClient } from '../../witnessing/clients/evm/json-rpc.js';
import { openSignatureStamps } from '../open-witnesses.js';
import { type Check, failed, ok, type Result, warning } from './finding.js';

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 64 * 1024;
const MAX_OFFSET_MS = 5_000;

/** The checks of what the service calls. */
export function serviceChecks(
  config: Pick<Config, 'natsUrl' | 'natsReplicas' | 'witnesses' | 'logDomain'>,
  { isOfUp }: { isOfUp: boolean },
): Check[] {
  const { witnesses } = config;
  return [
    { name: 'nats', run: async () => [await checkNats(config)] },
    ...(witnesses.length === 0
      ? [{ name: 'witnesses', run: async () => [isOfUp ? OWN_WITNESS : NO_WITNESS] }]
      : []),
    ...witnesses.map((witness) => ({
      name: `witness ${witness.name}`,
      run: async (signal: AbortSignal) => [await checkWitness(witness, config.logDomain, signal)],
    })),
  ];
}

const OWN_WITNESS = warning('only the embedded authority, whose clock is your own; set WITNESSES');
const NO_WITNESS = warning('none: only your own key vouches for the log; set WITNESSES');

async function checkNats({
  natsUrl,
  natsReplicas,
}: Pick<Config, 'natsUrl' | 'natsReplicas'>): Promise<Result> {
  if (natsUrl === undefined) return warning('none: jobs run from the tables, slower');
  const closing = new AbortController();
  const connection = await connectNats(natsOptions({ url: natsUrl, name: 'attest doctor' }, closing.signal));
  try {
    const manager = await connection.jetstreamManager({ timeout: TIMEOUT_MS });
    const { storage } = await manager.getAccountInfo();
    const version = connection.info?.version ?? 'of an unknown version';
    const isCluster = connection.info?.cluster !== undefined;
    if (natsReplicas > 1 && !isCluster)
      return failed(`NATS ${version} is no cluster, and NATS_REPLICAS is ${natsReplicas}`);
    return ofStream(
      await findStreamServers(manager, streamName(QUEUE_PREFIX)),
      natsReplicas,
      `NATS ${version}, JetStream stores ${storage} bytes`,
    );
  } finally {
    closing.abort();
    await connection.close();
  }
}

/** Judges by which servers keep the stream of jobs. */
function ofStream(stream: StreamServers | undefined, replicas: number, text: string): Result {
  if (stream === undefined) return ok(`${text}, and no stream yet: a worker makes it`);
  const { names, away } = stream;
  if (away.length > 0)
    return warning(
      `${text}; of ${names.join(', ')}, which keep it, ${away.join(', ')} do not keep up: start them, or let them catch up`,
    );
  if (replicas > 1 && names.length < replicas)
    return warning(
      `${text} on ${names.length} of NATS_REPLICAS=${replicas} servers: a worker with it adds others`,
    );
  return ok(names.length > 1 ? `${text} on ${names.length} servers` : text);
}

async function checkWitness(
  config: WitnessConfig,
  logDomain: string | undefined,
  signal: AbortSignal,
): Promise<Result> {
  switch (config.kind) {
    case WitnessKind.RFC3161: {
      const { genTime } = await openSignatureStamps(config, TIMEOUT_MS)(randomBytes(32), signal);
      const offsetMs = Date.now() - genTime.getTime();
      const text = `made a time stamp that verifies, ${Math.round(offsetMs / 1000)} s behind this machine's clock`;
      return Math.abs(offsetMs) > MAX_OFFSET_MS ? warning(text) : ok(text);
    }
    case WitnessKind.LOG_WITNESS:
      return checkLogWitness(config, logDomain, signal);
    case WitnessKind.OPENTIMESTAMPS:
      return checkCalendars(config, signal);
    case WitnessKind.EVM:
      return checkEvm(config, signal);
  }
}

async function getStatus(url: string, signal: AbortSignal): Promise<number> {
  const wanted = { url, method: 'GET', timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES } as const;
  return (await boundedRequest({}, wanted, signal)).status;
}

/** Asks for the checkpoint of the live log that it has cosigned last (C2SP tlog-witness). */
async function checkLogWitness(
  { url }: LogWitnessConfig,
  logDomain: string | undefined,
  signal: AbortSignal,
): Promise<Result> {
  const origin = `live.${logDomain ?? 'log.example.com'}`;
  const status = await getStatus(
    `${url}/${createHash('sha256').update(origin).digest('hex')}/checkpoint`,
    signal,
  );
  if (status === 200) return ok(`answers, and has cosigned ${origin}`);
  if (status < 500) return ok(`answers (HTTP ${status}); it must know the verifier keys of your logs`);
  return failed(`answers with HTTP ${status}`);
}

async function checkCalendars(
  { calendars, min }: OpenTimestampsConfig,
  signal: AbortSignal,
): Promise<Result> {
  const statuses = await Promise.all(calendars.map((url) => getStatus(url, signal).catch(() => 599)));
  const answering = statuses.filter((status) => status < 500).length;
  const text = `${answering} of ${calendars.length} calendars answer, ${min} are needed`;
  if (answering < min) return failed(text);
  return answering < calendars.length ? warning(text) : ok(text);
}

async function checkEvm(
  { rpcUrl: url, chainId, contract, privateKey }: EvmConfig,
  signal: AbortSignal,
): Promise<Result> {
  const call = jsonRpcClient({}, { url, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES }, signal);
  const found = Number(await call('eth_chainId', []));
  if (found !== chainId) return failed(`the node is of chain ${found}, not ${chainId}`);
  if ((await call('eth_getCode', [contract, 'latest'])) === '0x')
    return failed(`there is no contract at ${contract}: attest witnesses deploy-contract makes one`);
  const { address } = evmAccount(privateKey);
  const wei = BigInt(String(await call('eth_getBalance', [address, 'latest'])));
  return wei === 0n
    ? failed(`the account ${address} has no money for gas`)
    : ok(`chain ${chainId}, ${address} has ${wei} wei`);
}
