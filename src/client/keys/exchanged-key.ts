/** API keys by the token of an identity provider, for programs that store none. */
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import { TokenService } from '../../../gen/attestation/v1/tokens_pb.js';
import { type EnvironmentName, environmentNumber } from '../../protocol/environment.js';
import { type Caller, callUnary } from '../call.js';
import { fixedKey, type KeySource } from './key-source.js';

/** Options of a client that exchanges tokens. */
export type ExchangeOptions = {
  /** Returns an OpenID Connect token for the service's address as its audience; called for each exchange. */
  readonly identityToken?: (() => string | Promise<string>) | undefined;
  /** The project to act for; needed if trust rules of several projects accept the token. */
  readonly projectId?: string | undefined;
  /** The environment to act for; needed if trust rules of both accept the token. */
  readonly environment?: EnvironmentName | undefined;
};

/** Exchanged keys work for 15 minutes. By the elapsed time, because clocks differ. */
const RENEW_AFTER_MS = 10 * 60_000;

/** Exchanges a token at the first call, and another one before the key expires. Concurrent calls share an exchange. */
export function exchangedKey(
  caller: Omit<Caller, 'key'>,
  { identityToken, projectId = '', environment: name }: ExchangeOptions,
  monotonicMs = () => performance.now(),
): KeySource {
  let current: { secret: string; untilMs: number } | undefined;
  let exchanging: Promise<string> | undefined;
  const environment = name === undefined ? Environment.UNSPECIFIED : environmentNumber(name);
  const keyless = { ...caller, key: fixedKey(undefined) };
  const exchange = async (): Promise<string> => {
    const startedMs = monotonicMs();
    const token = (await identityToken?.()) ?? '';
    const request = { token, projectId, environment };
    const { secret } = await callUnary(keyless, TokenService.method.exchangeToken, request);
    current = { secret, untilMs: startedMs + RENEW_AFTER_MS };
    return secret;
  };
  return {
    async get(signal) {
      if (current !== undefined && monotonicMs() < current.untilMs) return current.secret;
      exchanging ??= exchange().finally(() => {
        exchanging = undefined;
      });
      const key = await exchanging;
      signal?.throwIfAborted();
      return key;
    },
    replace(rejected) {
      if (current?.secret === rejected) current = undefined;
      return true;
    },
  };
}
