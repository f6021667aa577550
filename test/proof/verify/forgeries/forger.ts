/** A forger who has other keys, and signs statements anew. */
import { join } from 'node:path';
import t from 'tap';
import { fromBase64, toBase64, toHex } from '../../../../src/proof/bytes/encoding.js';
import { leafHash } from '../../../../src/proof/log/merkle.js';
import { dsseKeyHint, IN_TOTO_PAYLOAD_TYPE, preAuthEncoding } from '../../../../src/proof/statement/dsse.js';
import { leafOf } from '../../../../src/proof/statement/leaf.js';
import { makeService } from '../../sample.js';
import { service } from '../../verifying.js';
import { makePublic } from '../public-sample.js';
import { type Change, entry, envelope, type Json, material, restate } from './edits.js';

const forger = await makeService(join(t.testdir(), 'forger'));

/** What the forger's own service attests, under the name of the trusted log. */
export const forgers = await makePublic({ ...forger, origin: service.origin });

/** Edits the statement and signs it with the forger's key; the leaf is that of the new signature. */
export function resign(change: (statement: Json) => unknown, more: Change = () => {}): Change {
  return (bundle) => {
    restate(change)(bundle);
    const payload = fromBase64(envelope(bundle).payload);
    const pae = preAuthEncoding(IN_TOTO_PAYLOAD_TYPE, payload);
    const { signature, record } = leafOf(pae, forger.dsse.sign(pae), forger.dsse.publicKey);
    Object.assign(envelope(bundle).signatures[0]!, { sig: toBase64(signature) });
    Object.assign(material(bundle).publicKey, { hint: dsseKeyHint(forger.dsse.publicKey) });
    Object.assign(entry(bundle), { canonicalizedBody: toBase64(record) });
    Object.assign(bundle.submission, { leaf_sha256: toHex(leafHash(record)) });
    more(bundle);
  };
}
