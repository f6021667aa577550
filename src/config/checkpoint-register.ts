/** The settings of the checkpoint register: a folder, a store of objects, or a C2SP witness. */
import { resolve } from 'node:path';
import type { NoteKey } from '../proof/log/note.js';
import { InvalidValue } from './invalid-value.js';
import { type ObjectStorage, type Storage, storage } from './object-storage.js';
import { outboundUrl } from './setting-types.js';
import type { Settings, SettingType } from './settings.js';
import { cosignerKey } from './witnesses/log-witness.js';

/** The absolute path of a folder; a store of objects; or the prefix of a C2SP witness, and the keys that it signs with. */
export type RegisterConfig =
  | string
  | { readonly storage: ObjectStorage }
  | { readonly url: string; readonly keys: readonly NoteKey[] };

type Place = Storage | { readonly url: string };

const MAX_KEYS = 8;

const place: SettingType<Place> = {
  expected: `${storage.expected}, or the http or https URL of a C2SP witness without user or fragment`,
  secret: true,
  fromFile: true,
  parse: (text) => (/^https?:/i.test(text) ? { url: outboundUrl.parse(text) } : storage.parse(text)),
};

const keys: SettingType<NoteKey[]> = {
  expected: `${cosignerKey.expected}, or several with spaces between them`,
  parse: (text) => {
    const texts = text.trim().split(/\s+/);
    if (texts.length > MAX_KEYS) throw new InvalidValue(`it has more than ${MAX_KEYS} keys`);
    if (new Set(texts).size < texts.length) throw new InvalidValue('it has a key twice');
    return texts.map(cosignerKey.parse);
  },
};

/** Reads CHECKPOINT_REGISTER and CHECKPOINT_REGISTER_KEY, which a witness needs and a folder cannot have. */
export function readRegisterConfig(settings: Settings, dataDir: string): RegisterConfig {
  const found = settings.find('CHECKPOINT_REGISTER', place);
  if (found !== undefined && 'url' in found) {
    return { url: found.url, keys: settings.require('CHECKPOINT_REGISTER_KEY', keys) };
  }
  if (settings.find('CHECKPOINT_REGISTER_KEY', keys) !== undefined) {
    const expected = 'the URL of a witness as CHECKPOINT_REGISTER';
    settings.report({ name: 'CHECKPOINT_REGISTER_KEY', problem: 'is set', expected });
  }
  if (found !== undefined && 'storage' in found) return found;
  return found?.folder ?? resolve(dataDir, 'checkpoint-register');
}
