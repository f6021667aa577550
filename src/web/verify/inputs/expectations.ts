import { fromHex } from '../../../proof/bytes/encoding.js';
import { FormatError } from '../../../proof/bytes/format-error.js';
import type { VerifyOptions } from '../../../proof/verify/verify.js';
import type { EnvironmentName } from '../../../protocol/environment.js';

/** What the reader expects beside the file, as typed. */
export type Expectations = {
  readonly environment: EnvironmentName;
  readonly project: string;
  readonly issuer: string;
  readonly identity: string;
  readonly metadata: string;
  readonly metadataSalt: string;
  readonly bitcoinHeaders: string;
};

export const NO_EXPECTATIONS: Expectations = {
  environment: 'live',
  project: '',
  issuer: '',
  identity: '',
  metadata: '',
  metadataSalt: '',
  bitcoinHeaders: '',
};

const HEADER = /^(\d{1,8})[\s:]+([0-9a-f]{160})$/i;
const MAX_HEADERS = 100;

/** The verifier's options for the expectations; what is empty is not expected. Throws FormatError. */
export function verifyOptionsOf(given: Expectations): Partial<VerifyOptions> {
  const { environment, project, issuer, identity, metadata, metadataSalt } = given;
  return {
    environment,
    ...(project.trim() !== '' && { project: project.trim() }),
    ...(issuer.trim() !== '' && { issuer: issuer.trim() }),
    ...(identity.trim() !== '' && { identity: identity.trim() }),
    ...(metadata.trim() !== '' && { metadata }),
    ...(metadataSalt.trim() !== '' && { metadataSalt: metadataSalt.trim() }),
    bitcoinHeaders: parseHeaders(given.bitcoinHeaders),
  };
}

function parseHeaders(text: string): ReadonlyMap<number, Uint8Array> {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  if (lines.length > MAX_HEADERS) throw new FormatError(`At most ${MAX_HEADERS} block headers can be given.`);
  return new Map(
    lines.map((line) => {
      const [, height, hex = ''] = HEADER.exec(line.trim()) ?? [];
      if (height === undefined) {
        throw new FormatError('A block header is a height, a colon and 160 hexadecimal digits, one a line.');
      }
      return [Number(height), fromHex(hex.toLowerCase())];
    }),
  );
}
