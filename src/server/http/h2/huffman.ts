/** How many bits the code of each octet has, as digits in base 36. The code is canonical, so the lengths tell all of it. */
const CODE_LENGTHS = [
  'dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca',
  'd67777777777777777777777878djde6f56565666577666567655677777fbeds',
  'kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn',
  'qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq',
].join('');
const EOS_LENGTH = 30;
const EOS = 256;
const ROOT = 0;
/** Nodes of the tree that are no leaves: one for each symbol but one. */
const NODES = 256;
/** What a nibble leads to where no code does. */
const NONE = -1;

/** By node and nibble: the node after it, or NONE, and the octet that ended within it, or NONE. */
type Automaton = { next: Int16Array; octet: Int16Array; mayEnd: Uint8Array };

/**
 * Decodes a string of HPACK's Huffman code (RFC 7541, section 5.2 and appendix B) to Latin-1. Returns undefined for one
 * that holds EOS, or that ends in padding of more than 7 bits or other than EOS begins with.
 */
export function decodeHuffman(bytes: Uint8Array, start: number, end: number): string | undefined {
  const { next, octet, mayEnd } = AUTOMATON;
  const out = Buffer.allocUnsafe(Math.ceil(((end - start) * 8) / 5));
  let length = 0;
  let node = ROOT;
  for (let i = start; i < end; i++) {
    const byte = bytes[i] as number;
    for (let shift = 4; shift >= 0; shift -= 4) {
      const at = (node << 4) | ((byte >> shift) & 0xf);
      node = next[at] as number;
      if (node === NONE) return undefined;
      const found = octet[at] as number;
      if (found !== NONE) out[length++] = found;
    }
  }
  return mayEnd[node] === 1 ? out.toString('latin1', 0, length) : undefined;
}

const AUTOMATON = compile(buildTree());

/** The children of each node: another node, or a leaf as `-2 - symbol`. */
function buildTree(): Int16Array {
  const children = new Int16Array(NODES * 2).fill(NONE);
  let nodes = 1;
  let code = 0;
  let last = 0;
  for (const { symbol, length } of sortedCodes()) {
    code <<= length - last;
    last = length;
    let node = ROOT;
    for (let bit = length - 1; bit > 0; bit--) {
      const at = node * 2 + ((code >>> bit) & 1);
      if (children[at] === NONE) children[at] = nodes++;
      node = children[at] as number;
    }
    children[node * 2 + (code & 1)] = -2 - symbol;
    code++;
  }
  return children;
}

function sortedCodes(): { symbol: number; length: number }[] {
  const codes = [...CODE_LENGTHS].map((digit, symbol) => ({ symbol, length: Number.parseInt(digit, 36) }));
  codes.push({ symbol: EOS, length: EOS_LENGTH });
  return codes.sort((a, b) => a.length - b.length || a.symbol - b.symbol);
}

function compile(children: Int16Array): Automaton {
  const automaton = {
    next: new Int16Array(NODES * 16).fill(NONE),
    octet: new Int16Array(NODES * 16).fill(NONE),
    mayEnd: new Uint8Array(NODES),
  };
  for (let node = 0; node < NODES; node++) {
    for (let nibble = 0; nibble < 16; nibble++) addStep(automaton, children, node, nibble);
  }
  // Padding: up to 7 bits of EOS, which are all ones.
  for (let bits = 0, node = ROOT; bits < 8; bits++) {
    automaton.mayEnd[node] = 1;
    node = children[node * 2 + 1] as number;
  }
  return automaton;
}

/** No code is shorter than a nibble, so that one ends at most. */
function addStep({ next, octet }: Automaton, children: Int16Array, from: number, nibble: number): void {
  const at = from * 16 + nibble;
  let node = from;
  for (let bit = 3; bit >= 0; bit--) {
    const child = children[node * 2 + ((nibble >> bit) & 1)] as number;
    if (child === -2 - EOS) return;
    if (child < NONE) octet[at] = -2 - child;
    node = child < NONE ? ROOT : child;
  }
  next[at] = node;
}
