import t from 'tap';
import { parseDer } from '../../../src/proof/asn1/der.js';
import {
  generalizedTime,
  objectIdentifier,
  smallInteger,
  unsignedInteger,
} from '../../../src/proof/asn1/der-read.js';
import {
  derElement,
  derInteger,
  derObjectIdentifier,
  derSequence,
  derSetOf,
  derUtf8String,
} from '../../../src/proof/asn1/der-write.js';
import { fromHex, toHex, utf8 } from '../../../src/proof/bytes/encoding.js';
import { FormatError } from '../../../src/proof/bytes/format-error.js';
import { nameText } from '../../../src/proof/rfc3161/name.js';

t.test('values have one encoding each', async (t) => {
  const time = (text: string) =>
    generalizedTime(parseDer(derElement(0x18, utf8(text)), 100), 'time').toISOString();
  t.equal(time('20240229235959Z'), '2024-02-29T23:59:59.000Z');
  t.equal(time('20240229235959.5Z'), '2024-02-29T23:59:59.500Z');
  t.equal(time('20240229235959.123999999Z'), '2024-02-29T23:59:59.123Z');
  t.equal(time('20240229235959.120Z'), '2024-02-29T23:59:59.120Z');
  const badTimes = [
    '20230229000000Z',
    '20241301000000Z',
    '20240101240000Z',
    '20240101235960Z',
    '202401010000Z',
    '',
  ];
  for (const text of [
    ...badTimes,
    '20240101000000',
    '20240101000000,5Z',
    '20240101000000.Z',
    `20240101000000.${'1'.repeat(40)}Z`,
  ]) {
    t.throws(() => time(text), FormatError, text);
  }

  const oids = [
    '2.25.277798158585258549510730547708933657753',
    '1.2.840.113549',
    '2.999.3',
    '0.39.0',
    '1.3.6.1.4.1',
  ];
  for (const oid of oids) t.equal(objectIdentifier(parseDer(derObjectIdentifier(oid), 100), 'oid'), oid);
  for (const hex of ['0600', '060180', '0602802a', '06022a80', `0641${'2a'.repeat(65)}`]) {
    t.throws(() => objectIdentifier(parseDer(fromHex(hex), 100), 'oid'), FormatError, hex);
  }
  for (const text of ['', '1', '3.1', '1.02', '1.a', '1..2'])
    t.throws(() => derObjectIdentifier(text), RangeError, text);

  t.equal(toHex(derInteger(fromHex('000080'))), '02020080');
  t.equal(toHex(derInteger(0)), '020100');
  t.equal(toHex(unsignedInteger(parseDer(fromHex('02020080'), 100), 'integer')), '80');
  t.equal(smallInteger(parseDer(fromHex('02017f'), 100), 'integer'), 127);
  for (const hex of ['0200', '0201ff', '0202007f', '02020000']) {
    t.throws(() => unsignedInteger(parseDer(fromHex(hex), 100), 'integer'), FormatError, hex);
  }
  t.throws(() => smallInteger(parseDer(fromHex('02020080'), 100), 'integer'), FormatError);
});

t.test('a name is one line of text', (t) => {
  const attribute = (oid: string, value: Uint8Array) => derSequence(derObjectIdentifier(oid), value);
  const name = derSequence(
    derSetOf(attribute('2.5.4.6', derElement(0x13, utf8('DE')))),
    derSetOf(attribute('2.5.4.10', derElement(0x1e, fromHex('00dc0062')))),
    derSetOf(
      attribute('2.5.4.3', derUtf8String(' a,b\n')),
      attribute('1.2.3', derElement(0x14, fromHex('fc'))),
    ),
  );
  t.equal(nameText(parseDer(name, 200)), '1.2.3=ü+CN=\\ a\\,b\\0a,O=Üb,C=DE');
  t.end();
});
