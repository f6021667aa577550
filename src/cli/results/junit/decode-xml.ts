/** Bytes of an XML document to text. */
import { UsageError } from '../../cli.js';

/** `decode` returns the text of a piece, and of what was left of the piece before. */
type XmlDecoder = { decode(piece?: Uint8Array): string };

/** An XML declaration is in the first bytes, in ASCII unless there is a byte order mark. */
const DECLARATION_BYTES = 256;

/**
 * Opens the decoder that the first bytes of a document ask for: by the byte order mark, else by the encoding that the XML
 * declaration names, else UTF-8 (XML 1.0, appendix F). Throws UsageError, also from `decode`, for bytes that are not in it.
 */
export function openXmlDecoder(file: string, start: Uint8Array): XmlDecoder {
  const encoding = findEncoding(start);
  const decoder = openDecoder(file, encoding);
  return {
    decode: (piece) => {
      try {
        return decoder.decode(piece, { stream: piece !== undefined });
      } catch {
        throw new UsageError(
          `${file} is not valid ${encoding}: have it written as UTF-8, or the XML declaration name its encoding`,
        );
      }
    },
  };
}

function openDecoder(file: string, encoding: string) {
  try {
    return new TextDecoder(encoding, { fatal: true });
  } catch {
    throw new UsageError(
      `${file} has the encoding ${encoding}, which cannot be read: have it written as UTF-8`,
    );
  }
}

function findEncoding(start: Uint8Array): string {
  const [a, b, c, d] = start;
  if (a === 0xfe && b === 0xff) return 'UTF-16BE';
  if (a === 0xff && b === 0xfe) return 'UTF-16LE';
  // The first two characters, <?, without a mark.
  if (a === 0 && b === 0x3c && c === 0 && d === 0x3f) return 'UTF-16BE';
  if (a === 0x3c && b === 0 && c === 0x3f && d === 0) return 'UTF-16LE';
  const text = Buffer.from(start.subarray(0, DECLARATION_BYTES)).toString('latin1');
  const [, , named] =
    /^(?:\u00ef\u00bb\u00bf)?<\?xml\s[^>]*?encoding\s*=\s*(["'])([\w.:-]+)\1/.exec(text) ?? [];
  // What claims to be UTF-16 and is not has been converted since.
  return named === undefined || /^utf-?16/i.test(named) ? 'UTF-8' : named;
}
