/** The functions of a PKCS#11 module (OASIS PKCS #11 2.40), called on libuv's threads. */
import type koffi from 'koffi';
import { loadPackage } from '../backend.js';
import { CryptokiError } from './cryptoki-error.js';

/** The layout of CK_FUNCTION_LIST: a version, then functions in this order, of which these are called. */
const FUNCTIONS_AT = 8;
const FUNCTION_COUNT = 68;
const PLACES = {
  C_Initialize: 0,
  C_Finalize: 1,
  C_GetSlotList: 4,
  C_GetTokenInfo: 6,
  C_OpenSession: 12,
  C_CloseSession: 13,
  C_Login: 18,
  C_GetAttributeValue: 24,
  C_FindObjectsInit: 26,
  C_FindObjects: 27,
  C_FindObjectsFinal: 28,
  C_SignInit: 42,
  C_Sign: 43,
} as const;

const CKF_OS_LOCKING_OK = 2;
const CKR_OK = 0;
const CKR_CRYPTOKI_ALREADY_INITIALIZED = 0x191;

const TOKEN_INFO_BYTES = 208;
const LABEL_BYTES = 32;
const MAX_SIGNATURE_BYTES = 512;
const CKF_SERIAL_SESSION = 4;
const CKU_USER = 1;

/** A slot, session or object. */
type Handle = number | bigint;

/** An attribute: its type and its value. */
export type Attribute = { readonly type: number; readonly value: Uint8Array };

/** A module. All functions reject with a CryptokiError. */
export type Cryptoki = {
  finalize(): Promise<void>;
  /** The slots that have a token, with the tokens' labels. */
  listTokens(): Promise<{ slot: Handle; label: string }[]>;
  openSession(slot: Handle): Promise<Handle>;
  closeSession(session: Handle): Promise<void>;
  login(session: Handle, pin: string): Promise<void>;
  /** The objects with these attributes, at most `max`. */
  findObjects(session: Handle, attributes: readonly Attribute[], max: number): Promise<Handle[]>;
  getAttribute(session: Handle, object: Handle, type: number): Promise<Uint8Array>;
  sign(session: Handle, key: Handle, mechanism: number, data: Uint8Array): Promise<Uint8Array>;
};

type Name = keyof typeof PLACES;
/** Calls a function of the module. Rejects unless it returns CKR_OK. */
type Call = (name: Name, ...args: unknown[]) => Promise<void>;

/** Loads a module and initialises it for calls from several threads. */
export async function loadCryptoki(path: string): Promise<Cryptoki> {
  const { default: ffi } = await loadPackage('koffi', () => import('koffi'));
  const call = bindModule(ffi, path);
  const locking = { a: null, b: null, c: null, d: null, flags: CKF_OS_LOCKING_OK, reserved: null };
  await call('C_Initialize', locking).catch((error) => {
    if (!(error instanceof CryptokiError && error.rv === CKR_CRYPTOKI_ALREADY_INITIALIZED)) throw error;
  });
  return {
    finalize: () => call('C_Finalize', null),
    listTokens: () => listTokens(call),
    openSession: async (slot) => {
      const session: Handle[] = [0];
      await call('C_OpenSession', slot, CKF_SERIAL_SESSION, null, null, session);
      return session[0] as Handle;
    },
    closeSession: (session) => call('C_CloseSession', session),
    login: (session, pin) => call('C_Login', session, CKU_USER, Buffer.from(pin), Buffer.byteLength(pin)),
    findObjects: (session, attributes, max) => findObjects(call, session, attributes, max),
    getAttribute: (session, object, type) => getAttribute(call, session, object, type),
    sign: (session, key, mechanism, data) => sign(call, session, key, mechanism, data),
  };
}

/** A library that nothing refers to is unloaded, with functions that are still called. */
const LOADED: unknown[] = [];

/** Reads the module's list of functions. Throws an Error if it cannot be loaded. */
function bindModule(ffi: typeof koffi, path: string): Call {
  const ulong = ffi.type('ulong');
  const bytes = ffi.type('void *');
  const attributes = ffi.inout(ffi.pointer(ffi.struct({ type: ulong, pValue: bytes, ulValueLen: ulong })));
  const mechanism = ffi.pointer(ffi.struct({ mechanism: ulong, pParameter: bytes, ulParameterLen: ulong }));
  const locking = ffi.pointer(
    ffi.struct({ a: bytes, b: bytes, c: bytes, d: bytes, flags: ulong, reserved: bytes }),
  );
  const count = ffi.inout(ffi.pointer(ulong));
  const types: Record<Name, (ReturnType<typeof ffi.type> | ReturnType<typeof ffi.inout>)[]> = {
    C_Initialize: [locking],
    C_Finalize: [bytes],
    C_GetSlotList: [ffi.type('uint8'), bytes, count],
    C_GetTokenInfo: [ulong, bytes],
    C_OpenSession: [ulong, ulong, bytes, bytes, count],
    C_CloseSession: [ulong],
    C_Login: [ulong, ulong, bytes, ulong],
    C_GetAttributeValue: [ulong, ulong, attributes, ulong],
    C_FindObjectsInit: [ulong, attributes, ulong],
    C_FindObjects: [ulong, bytes, ulong, count],
    C_FindObjectsFinal: [ulong],
    C_SignInit: [ulong, mechanism, ulong],
    C_Sign: [ulong, bytes, ulong, bytes, count],
  };
  const list: (bigint | null)[] = [null];
  const library = ffi.load(path);
  LOADED.push(library);
  const getList = library.func('C_GetFunctionList', ulong, [ffi.out(ffi.pointer(bytes))]);
  const rv = Number(getList(list));
  if (rv !== CKR_OK || !list[0]) throw new CryptokiError('C_GetFunctionList', rv);
  const addresses: bigint[] = ffi.decode(list[0], FUNCTIONS_AT, ffi.array(bytes, FUNCTION_COUNT));
  const names = Object.keys(PLACES) as Name[];
  const functions = new Map(
    names.map((name) => [name, ffi.decode(addresses[PLACES[name]], ffi.proto(ulong, types[name]))]),
  );
  // A thread writes where they point to, and nothing else may be left that refers to them.
  const held = new Set<unknown[]>();
  return (name, ...args) =>
    new Promise((resolve, reject) => {
      held.add(args);
      functions.get(name).async(...args, (error: Error | null, result: number | bigint) => {
        held.delete(args);
        if (error) reject(error);
        else if (Number(result) === CKR_OK) resolve();
        else reject(new CryptokiError(name, Number(result)));
      });
    });
}

async function listTokens(call: Call): Promise<{ slot: Handle; label: string }[]> {
  const count = [0];
  await call('C_GetSlotList', 1, null, count);
  const slots = new BigUint64Array(Number(count[0]));
  await call('C_GetSlotList', 1, slots, count);
  const tokens: { slot: Handle; label: string }[] = [];
  for (const slot of slots.subarray(0, Number(count[0]))) {
    const info = Buffer.alloc(TOKEN_INFO_BYTES);
    await call('C_GetTokenInfo', slot, info);
    tokens.push({ slot, label: info.toString('utf8', 0, LABEL_BYTES).trimEnd() });
  }
  return tokens;
}

async function findObjects(
  call: Call,
  session: Handle,
  attributes: readonly Attribute[],
  max: number,
): Promise<Handle[]> {
  const template = attributes.map(({ type, value }) => structOf(type, value));
  await call('C_FindObjectsInit', session, template, template.length);
  const found = new BigUint64Array(max);
  const count = [0];
  await call('C_FindObjects', session, found, max, count);
  await call('C_FindObjectsFinal', session);
  return [...found.subarray(0, Number(count[0]))];
}

async function getAttribute(call: Call, session: Handle, object: Handle, type: number): Promise<Uint8Array> {
  const value = Buffer.alloc(MAX_SIGNATURE_BYTES);
  const template = [structOf(type, value)];
  await call('C_GetAttributeValue', session, object, template, 1);
  return value.subarray(0, Number(template[0]?.ulValueLen));
}

async function sign(
  call: Call,
  session: Handle,
  key: Handle,
  mechanism: number,
  data: Uint8Array,
): Promise<Uint8Array> {
  await call('C_SignInit', session, { mechanism, pParameter: null, ulParameterLen: 0 }, key);
  const signature = Buffer.alloc(MAX_SIGNATURE_BYTES);
  const length = [signature.length];
  await call('C_Sign', session, data, data.length, signature, length);
  return signature.subarray(0, Number(length[0]));
}

function structOf(type: number, value: Uint8Array) {
  return { type, pValue: value, ulValueLen: value.length };
}

/** A CK_ULONG as the value of an attribute. */
export function ulongBytes(value: number): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
