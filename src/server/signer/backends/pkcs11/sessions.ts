/** Sessions with a token, each used for one thing at a time. */
import type { Pkcs11Config } from '../../../../config/signer/backends.js';
import { SigningError } from '../../../keys/signing-error.js';
import { CredentialRejected } from '../backend.js';
import type { Cryptoki } from './cryptoki.js';
import { CryptokiError } from './cryptoki-error.js';

/** A session; `login` numbers the logins of this process. */
export type Session = { readonly handle: number | bigint; readonly login: number };

export type Sessions = {
  readonly config: Pkcs11Config;
  /** Runs work with a session of its own. Runs it once more, after another login, if the session was lost. */
  use<T>(work: (session: Session) => Promise<T>): Promise<T>;
};

const CKR_USER_ALREADY_LOGGED_IN = 0x100;

/** Finds the token and logs in. Callers use no more sessions at once than `config.inFlight`. */
export async function openSessions(cryptoki: Cryptoki, config: Pkcs11Config): Promise<Sessions> {
  let free: Session[] = [];
  let logins = 0;
  let loggedIn: Promise<Session> | undefined;
  let rejected: CredentialRejected | undefined;

  const logIn = async (): Promise<Session> => {
    if (rejected !== undefined) throw rejected;
    const slot = await findSlot(cryptoki, config);
    const handle = await cryptoki.openSession(slot);
    try {
      await cryptoki.login(handle, config.pin);
    } catch (error) {
      if (!(error instanceof CryptokiError)) throw error;
      if (error.isPinRejected) {
        rejected = new CredentialRejected(
          `the token ${config.tokenLabel} rejects the PIN of ${config.pinFile}: ${error.message}`,
        );
        throw rejected;
      }
      if (error.rv !== CKR_USER_ALREADY_LOGGED_IN) throw error;
    }
    return { handle, login: ++logins };
  };
  /** The login is of the process: further sessions have it. The session that it was made with stays open. */
  const take = async (): Promise<Session> => {
    const known = free.pop();
    if (known !== undefined) return known;
    loggedIn ??= logIn().catch((error) => {
      loggedIn = undefined;
      throw error;
    });
    const { login } = await loggedIn;
    const handle = await cryptoki.openSession(await findSlot(cryptoki, config));
    return { handle, login };
  };
  const forget = (login: number) => {
    if (login !== logins) return;
    free = [];
    loggedIn = undefined;
  };
  const useOnce = async <T>(work: (session: Session) => Promise<T>): Promise<T> => {
    const session = await take();
    try {
      const result = await work(session);
      if (session.login === logins && loggedIn !== undefined) free.push(session);
      return result;
    } catch (error) {
      if (error instanceof CryptokiError && error.isSessionLost) forget(session.login);
      await cryptoki.closeSession(session.handle).catch(() => {});
      throw error;
    }
  };
  await logInFirst(
    config,
    take().then((session) => free.push(session)),
  );
  return {
    config,
    use: (work) =>
      useOnce(work).catch((error) => {
        if (error instanceof CryptokiError && error.isSessionLost) return useOnce(work);
        throw error;
      }),
  };
}

async function logInFirst({ tokenLabel }: Pkcs11Config, work: Promise<unknown>): Promise<void> {
  await work.catch((error) => {
    if (!(error instanceof CryptokiError)) throw error;
    throw new SigningError(`the token ${tokenLabel}: ${error.message}`);
  });
}

async function findSlot(cryptoki: Cryptoki, { tokenLabel, module }: Pkcs11Config): Promise<number | bigint> {
  const tokens = await cryptoki.listTokens();
  const found = tokens.find(({ label }) => label === tokenLabel);
  if (found !== undefined) return found.slot;
  const labels = tokens.flatMap(({ label }) => label || []).join(', ') || 'none';
  throw new SigningError(`the module ${module} has no token ${tokenLabel}; it has: ${labels}`);
}
