/** Keys of a token behind a PKCS#11 module, such as an HSM. */
import { createHash } from 'node:crypto';
import type { Pkcs11Config } from '../../../../config/signer/backends.js';
import type { KeyReference } from '../../../../config/signer/keys.js';
import { derEcdsaSignature } from '../../../../proof/asn1/der-write.js';
import { SigningError } from '../../../keys/signing-error.js';
import { type Backend, type BackendKey, wrongAlgorithm } from '../backend.js';
import { type PublicKey, readEd25519, readP256Point } from '../public-keys.js';
import { type Attribute, type Cryptoki, loadCryptoki, ulongBytes } from './cryptoki.js';
import { CryptokiError } from './cryptoki-error.js';
import { openSessions, type Session, type Sessions } from './sessions.js';

const CKA_CLASS = 0x0;
const CKA_LABEL = 0x3;
const CKA_ID = 0x102;
const CKA_EC_PARAMS = 0x180;
const CKA_EC_POINT = 0x181;
const CKO_PUBLIC_KEY = 2;
const CKO_PRIVATE_KEY = 3;
const CKM_ECDSA = 0x1041;
const CKM_EDDSA = 0x1057;

/** CKA_EC_PARAMS of P-256, and of Ed25519 by name and by object identifier. */
const P256_PARAMS = '06082a8648ce3d030107';
const ED25519_PARAMS = ['130c656477617264733235353139', '06032b6570'];

/** An octet string in DER with a point of Ed25519, or of P-256. */
const OCTET_STRING = 4;
const WRAPPED_BYTES = [34, 67];

/** Loads a module, finds the token and logs in. Rejects with a SigningError. */
export async function openPkcs11(config: Pkcs11Config): Promise<Backend> {
  const cryptoki = await loadCryptoki(config.module).catch((error: Error) => {
    if (error instanceof SigningError) throw error;
    throw new SigningError(`the module ${config.module} cannot be used: ${error.message}`);
  });
  const sessions = await openSessions(cryptoki, config);
  return {
    open: (reference) => describing(config, openKey(cryptoki, sessions, reference)),
    close: async () => {
      await cryptoki.finalize().catch(() => {});
    },
  };
}

/** The errors of the module as those of its operator. */
async function describing<T>({ tokenLabel }: Pkcs11Config, work: Promise<T>): Promise<T> {
  return work.catch((error) => {
    if (!(error instanceof CryptokiError)) throw error;
    throw new SigningError(`the token ${tokenLabel}: ${error.message}`);
  });
}

async function openKey(cryptoki: Cryptoki, sessions: Sessions, reference: KeyReference): Promise<BackendKey> {
  const { algorithm, spki } = await sessions.use((session) => findPublicKey(cryptoki, session, reference));
  const mechanism = algorithm === 'ed25519' ? CKM_EDDSA : CKM_ECDSA;
  let found: { login: number; handle: number | bigint } | undefined;
  const sign = async (data: Uint8Array) =>
    sessions.use(async (session) => {
      // Handles are of a login: after another one they may name something else.
      if (found?.login !== session.login) {
        const handle = await findOne(cryptoki, session, CKO_PRIVATE_KEY, reference);
        found = { login: session.login, handle };
      }
      return cryptoki.sign(session.handle, found.handle, mechanism, data);
    });
  await sessions.use((session) => findOne(cryptoki, session, CKO_PRIVATE_KEY, reference));
  return {
    algorithm,
    spki,
    sign: (data) => {
      if (algorithm === 'ed25519') return describing(sessions.config, sign(data));
      const signed = sign(createHash('sha256').update(data).digest());
      return describing(sessions.config, signed).then(derEcdsaSignature);
    },
  };
}

async function findPublicKey(
  cryptoki: Cryptoki,
  session: Session,
  reference: KeyReference,
): Promise<PublicKey> {
  const object = await findOne(cryptoki, session, CKO_PUBLIC_KEY, reference);
  const read = (type: number) =>
    cryptoki.getAttribute(session.handle, object, type).catch((error) => {
      if (error instanceof CryptokiError && error.isSessionLost) throw error;
      throw wrongAlgorithm(nameOf(reference), 'other than an elliptic curve');
    });
  const params = Buffer.from(await read(CKA_EC_PARAMS)).toString('hex');
  const point = unwrap(await read(CKA_EC_POINT));
  const isEd25519 = ED25519_PARAMS.includes(params);
  const key = isEd25519 ? readEd25519(point) : params === P256_PARAMS ? readP256Point(point) : undefined;
  if (key === undefined) throw wrongAlgorithm(nameOf(reference), `a curve with CKA_EC_PARAMS ${params}`);
  return key;
}

/** A point is an octet string in DER; some modules give it without that. */
function unwrap(point: Uint8Array): Uint8Array {
  return WRAPPED_BYTES.includes(point.length) && point[0] === OCTET_STRING ? point.subarray(2) : point;
}

async function findOne(
  cryptoki: Cryptoki,
  session: Session,
  objectClass: number,
  reference: KeyReference,
): Promise<number | bigint> {
  const { key, id } = reference;
  const attributes: Attribute[] = [
    { type: CKA_CLASS, value: ulongBytes(objectClass) },
    { type: CKA_LABEL, value: Buffer.from(key) },
    ...(id === undefined ? [] : [{ type: CKA_ID, value: id }]),
  ];
  const [first, second] = await cryptoki.findObjects(session.handle, attributes, 2);
  const kind = objectClass === CKO_PUBLIC_KEY ? 'public' : 'private';
  if (first === undefined) {
    throw new SigningError(`the token has no ${kind} key ${nameOf(reference)}: pkcs11-tool --list-objects`);
  }
  if (second !== undefined) {
    throw new SigningError(`the token has several ${kind} keys ${nameOf(reference)}: add "id", the CKA_ID`);
  }
  return first;
}

function nameOf({ key, id }: KeyReference): string {
  return id === undefined ? key : `${key} with id ${Buffer.from(id).toString('hex')}`;
}
