/** Forgeries of a public statement with an identity: a table for the library, the command line and the verify page. */
import type { JsonObject } from '@bufbuild/protobuf';
import { utf8 } from '../../../../src/proof/bytes/encoding.js';
import type { Bundle } from '../../verifying.js';
import { mine, OTHER_ARTIFACT } from '../public-sample.js';
import { OWN_KEYS } from './own-keys.js';
import { RESTORED } from './restored.js';
import { SPLICED } from './spliced.js';
import { STATEMENT } from './statement.js';
import { WITNESSES } from './witnesses.js';

/** A forged bundle; `artifact` is the file that it is given for, by default the one that was attested. */
export type Forgery = { readonly what: string; readonly bundle: JsonObject; readonly artifact?: Uint8Array };

/** All of them. */
export const FORGERIES: readonly Forgery[] = [
  { what: 'an artifact that was not attested', bundle: mine, artifact: utf8('something else') },
  { what: 'the artifact of another submission', bundle: mine, artifact: OTHER_ARTIFACT },
  ...[...STATEMENT, ...SPLICED, ...RESTORED, ...OWN_KEYS, ...WITNESSES].map(([what, change]) => {
    const bundle = structuredClone(mine);
    change(bundle as unknown as Bundle);
    return { what, bundle };
  }),
];
