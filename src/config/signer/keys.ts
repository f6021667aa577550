/** The keys of `attest signer`: where each is, and what it may sign. */

import { InvalidValue } from '../invalid-value.js';
import { findText, type Members, reportUnknownMembers, requireText } from '../members.js';
import { oneOf, plainText } from '../setting-types.js';
import { quote, type SettingType } from '../settings.js';
import type { BackendConfig } from './backends.js';

/** What a key signs; anything else is refused. */
export type Purpose = 'statements' | 'log' | 'tuf' | 'receipts';

/** How a backend names a key: label, id, resource name or path, and the version where names are without one. */
export type KeyReference = {
  readonly key: string;
  readonly version: string | undefined;
  /** CKA_ID, of PKCS#11. */
  readonly id: Uint8Array | undefined;
};

/** A key. */
export type SignerKeyConfig = {
  /** Its name in the protocol. */
  readonly name: string;
  readonly backend: BackendConfig;
  readonly purpose: Purpose;
  /** The origin of the log, of that purpose. */
  readonly origin: string | undefined;
  readonly reference: KeyReference;
};

const NAME = /^[\w.:@/-]{1,128}$/;

const purpose = oneOf<Purpose>('statements', 'log', 'tuf', 'receipts');

const hex: SettingType<Uint8Array> = {
  expected: 'the CKA_ID of the key in hexadecimal',
  parse: (text) => {
    if (!/^([0-9a-f]{2}){1,128}$/i.test(text)) throw new InvalidValue();
    return Buffer.from(text, 'hex');
  },
};

/** The forms of `key` and `version` by the kind of backend. */
const KEYS: Readonly<Record<BackendConfig['kind'], SettingType<string>>> = {
  pkcs11: { ...plainText(128), expected: 'the CKA_LABEL of the key' },
  'aws-kms': {
    expected: 'the id or ARN of a key, which an alias is not: it may come to name another key',
    parse: matching(/^(arn:[\w-]+:kms:[\w-]+:\d{12}:key\/)?[\w-]{1,64}$/),
  },
  'gcp-kms': {
    expected: 'projects/…/locations/…/keyRings/…/cryptoKeys/…/cryptoKeyVersions/…',
    parse: matching(
      /^projects\/[\w.:-]+\/locations\/[\w-]+\/keyRings\/[\w-]+\/cryptoKeys\/[\w-]+\/cryptoKeyVersions\/\d+$/,
    ),
  },
  'azure-key-vault': { expected: 'the name of a key', parse: matching(/^[\w-]{1,127}$/) },
  'vault-transit': { expected: 'the name of a key', parse: matching(/^[\w-][\w.-]{0,127}$/) },
};

const VERSIONS: Partial<Record<BackendConfig['kind'], SettingType<string>>> = {
  'azure-key-vault': { expected: 'the version of the key, 32 hex digits', parse: matching(/^[0-9a-f]{32}$/) },
  'vault-transit': { expected: 'the version of the key, such as "1"', parse: matching(/^[1-9]\d{0,8}$/) },
};

/** Reads a key. Reports invalid members by path. */
export function readKey(name: string, object: Members, backends: readonly BackendConfig[]): SignerKeyConfig {
  if (!NAME.test(name)) {
    const expected = 'a name of 1 to 128 letters, digits and "_.:@/-"';
    object.report({ name: object.at, problem: 'has a name that cannot be used', expected });
  }
  const backend = readBackendName(object, backends);
  const read: Purpose | undefined = requireText(object, 'purpose', purpose);
  const version = backend && VERSIONS[backend.kind];
  reportUnknownMembers(object, [
    'backend',
    'purpose',
    'key',
    ...(version === undefined ? [] : ['version']),
    ...(backend?.kind === 'pkcs11' ? ['id'] : []),
    ...(read === 'log' ? ['origin'] : []),
  ]);
  return {
    name,
    backend: backend as BackendConfig,
    purpose: read as Purpose,
    origin: read === 'log' ? requireText(object, 'origin', plainText(255)) : undefined,
    reference: {
      key: requireText(object, 'key', KEYS[backend?.kind ?? 'pkcs11']),
      version: version && requireText(object, 'version', version),
      id: findText(object, 'id', hex),
    },
  };
}

function readBackendName(object: Members, backends: readonly BackendConfig[]): BackendConfig | undefined {
  return requireText(object, 'backend', {
    expected: `the name of a backend: ${backends.map(({ name }) => quote(name)).join(', ')}`,
    parse: (text) => {
      const found = backends.find(({ name }) => name === text);
      if (found === undefined) throw new InvalidValue();
      return found;
    },
  });
}

function matching(form: RegExp): (text: string) => string {
  return (text) => {
    if (!form.test(text)) throw new InvalidValue();
    return text;
  };
}
