/** Finds an attestation that EAS has recorded already, in a transaction of anyone. */
import { decodeLogs, getBlock, getLatestBlock } from '../../../proof/evm/chain.js';
import { easLookupCall, isRecordOf, recordingTopics } from '../../../proof/evm/contract.js';
import { decodeData, decodeNumber, encodeQuantity, type JsonRpc } from '../../../proof/evm/json-rpc.js';

type EasRecord = { contract: string; digest: Uint8Array };

/**
 * When EAS recorded the digest, in Unix time in seconds. Undefined if it has not. Rejects if the contract answers something
 * else than a time.
 */
export async function findEasTime(
  rpc: JsonRpc,
  { contract, digest }: EasRecord,
): Promise<number | undefined> {
  const answer = await rpc('eth_call', [{ to: contract, data: easLookupCall(digest) }, 'latest']);
  if (answer === '0x') throw new Error(`${contract} is no contract for method eas: it has no getTimestamp`);
  const seconds = decodeNumber(
    `0x${decodeData(answer, 32)
      .slice(2)
      .replace(/^0+(?=.)/, '')}`,
  );
  return seconds === 0 ? undefined : seconds;
}

/**
 * The hash of the transaction that recorded the digest at this time. Undefined if there is none. Providers limit the
 * range of blocks that they search for events, so the blocks are found first, by their times: about 25 requests.
 */
export async function findEasTransaction(
  rpc: JsonRpc,
  { contract, digest }: EasRecord,
  timestamp: number,
): Promise<string | undefined> {
  const first = await findFirstBlock(rpc, timestamp);
  const afterLast = await findFirstBlock(rpc, timestamp + 1);
  if (first >= afterLast) return undefined;
  const filter = {
    address: contract,
    topics: recordingTopics('eas', digest),
    fromBlock: encodeQuantity(first),
    toBlock: encodeQuantity(afterLast - 1),
  };
  const logs = decodeLogs(await rpc('eth_getLogs', [filter]));
  return logs.find((log) => isRecordOf(log, { contract, method: 'eas', digest, timestamp }))?.transactionHash;
}

/** The number of the first block of this time or later; one after the newest block if there is none. */
async function findFirstBlock(rpc: JsonRpc, timestamp: number): Promise<number> {
  let low = 0;
  let high = (await getLatestBlock(rpc)).number + 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const block = await getBlock(rpc, middle);
    // A node may have dropped old blocks.
    if (block === undefined || block.timestamp < timestamp) low = middle + 1;
    else high = middle;
  }
  return low;
}
