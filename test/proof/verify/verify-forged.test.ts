import t from 'tap';
import { ProofBundleSchema } from '../../../gen/attestation/v1/bundle_pb.js';
import { toBase64, utf8 } from '../../../src/proof/bytes/encoding.js';
import { signCheckpoint } from '../../../src/proof/log/checkpoint.js';
import { parseNote } from '../../../src/proof/log/note.js';
import { restJson } from '../rest-json.js';
import { ARTIFACT, BATCH, LOG_INDEX, METADATA, SUBMISSION_ID } from '../sample.js';
import { makeSamples } from '../sample-bundles.js';
import { type Bundle, changed, failures, good, sample, service, trustRoots, verify } from '../verifying.js';

t.test('no part of another bundle of the same batch makes a bundle say more than it did', async (t) => {
  const subject = { artifact: ARTIFACT, submissionId: SUBMISSION_ID, project: 'prj_01', logIndex: LOG_INDEX };
  const stranger = {
    artifact: utf8('the artifact of another project'),
    submissionId: 'sub_01JX5WQ3ZZZZZZZZZZZZZZZZZ0',
    project: 'prj_02',
    logIndex: LOG_INDEX + 1,
  };
  const [own, theirs] = (await makeSamples(service, [subject, stranger])).map(({ bundle }) =>
    restJson(ProofBundleSchema, bundle),
  );
  t.equal((await verify(own)).verdict, 'verified');
  t.strictSame(failures(await verify(theirs)), ['artifact.mismatch']);
  const places = differingPlaces(own, theirs);
  t.ok(places.length > 20, `${places.length} places`);
  for (const place of places) {
    const spliced = structuredClone(own);
    set(spliced, place, get(theirs, place));
    const result = await verify(spliced);
    t.equal(result.verdict, 'not_verified', place.join('/'));
    t.ok(failures(result).length > 0, `${place.join('/')}: ${failures(result)}`);
  }
});

t.test('a forgery is rejected at the step that it forges', async (t) => {
  const first = (b: Bundle) => b.checkpoints[0]!;
  const entry = (b: Bundle) => b.sigstore_bundle.verificationMaterial.tlogEntries[0]!;
  const rewrite = (b: Bundle, note: string) => {
    first(b).note = note;
    Object.assign(entry(b).inclusionProof.checkpoint, { envelope: note });
  };
  const [body, line] = halves((good as unknown as Bundle).checkpoints[0]!.note);
  const empty = new Uint8Array(32);
  const elsewhere = signCheckpoint(
    { origin: 'live.elsewhere.example', size: BATCH.treeSize, rootHash: empty },
    service.log,
  );
  const cases: [what: string, reason: RegExp, change: (bundle: Bundle) => unknown][] = [
    [
      'a second DSSE signature',
      /signatures\/1 is not known/,
      (b) => b.sigstore_bundle.dsseEnvelope.signatures.push(b.sigstore_bundle.dsseEnvelope.signatures[0]!),
    ],
    [
      'a second log entry',
      /tlogEntries\/1 is not known/,
      (b) => b.sigstore_bundle.verificationMaterial.tlogEntries.push(entry(b)),
    ],
    [
      'an in-toto payload under another type',
      /signature over the statement is not valid/,
      (b) => Object.assign(b.sigstore_bundle.dsseEnvelope, { payloadType: 'text/plain' }),
    ],
    ['a checkpoint of another origin', /is of another log/, (b) => rewrite(b, elsewhere)],
    [
      'an extension line in a checkpoint',
      /is not signed by its log/,
      (b) => rewrite(b, `${body}more\n\n${line}`),
    ],
    [
      'a size with a leading zero',
      /size is not a number/,
      (b) => rewrite(b, b.checkpoints[0]!.note.replace('\n', '\n0')),
    ],
    [
      "a second line by the log's key that does not verify",
      /is not signed by its log/,
      (b) => rewrite(b, `${body}\n${line}${spoiled(line)}`),
    ],
    ['a checkpoint without a signature', /do not end in a newline/, (b) => rewrite(b, `${body}\n`)],
    [
      'an index of 2^53',
      /must be an index below 2\^53/,
      (b) => Object.assign(entry(b), { logIndex: `${2 ** 53}` }),
    ],
    ['a negative index', /must be an index below 2\^53/, (b) => Object.assign(entry(b), { logIndex: '-1' })],
    [
      'the last index there can be',
      /not what the rest/,
      (b) => Object.assign(entry(b), { logIndex: `${Number.MAX_SAFE_INTEGER}` }),
    ],
    [
      'that index in both places',
      /not proven to be in the log/,
      (b) => {
        const logIndex = `${Number.MAX_SAFE_INTEGER}`;
        Object.assign(entry(b), { logIndex });
        Object.assign(entry(b).inclusionProof, { logIndex });
      },
    ],
    [
      'a tree of 2^53 leaves',
      /must be an integer below 2\^53/,
      (b) => Object.assign(first(b), { tree_size: `${2 ** 53}` }),
    ],
    [
      'the largest tree there can be',
      /is of another size/,
      (b) => Object.assign(first(b), { tree_size: Number.MAX_SAFE_INTEGER }),
    ],
    [
      'a proof with one hash too many',
      /is not proven to be in the log/,
      (b) => {
        const hash = toBase64(empty);
        first(b).inclusion_proof.push(hash);
        entry(b).inclusionProof.hashes.push(hash);
      },
    ],
    [
      'a proof of hashes that are too short',
      /is not proven to be in the log/,
      (b) => b.checkpoints[1]!.inclusion_proof.splice(0, 1, 'AAAA'),
    ],
    [
      'a time stamp over another checkpoint of the same log',
      /the stamp is over another digest/,
      (b) => Object.assign(b.witnesses[1]!, { tree_size: b.checkpoints[1]!.tree_size }),
    ],
    [
      'a time stamp passed off as the log',
      /is by another witness/,
      (b) => Object.assign(b.witnesses[1]!, { kind: 'transparency_log' }),
    ],
    [
      'a witness of a kind that cannot be checked, under a name that is required',
      /tsa could not be checked/,
      (b) => Object.assign(b.witnesses[1]!, { kind: 'opentimestamps' }),
    ],
  ];
  for (const [what, reason, change] of cases) {
    const result = await verify(changed(change));
    t.not(result.verdict, 'verified', what);
    t.match(result.steps.map(({ message }) => message).join('\n'), reason, what);
  }
});

t.test('a text that two readers could read differently is not verified', async (t) => {
  const text = JSON.stringify(good);
  const submission = JSON.stringify(good.submission);
  for (const bundle of [
    `{"submission":${submission},${text.slice(1)}`,
    text.replace('"sig":', '"sig":"","sig":'),
    text.replace('"log_index"', '"log_\\u0069ndex":1,"log_index"'),
  ]) {
    t.equal((await verify(bundle)).summary, 'Not verified: the bundle has a member twice.');
  }
  const colons = text.replace('"detail":{', '"detail":{"a:\\":":{"b":"::","c":[{"d":":"}]},');
  t.equal((await verify(colons)).verdict, 'verified', 'colons in texts are no members');
});

t.test('what is no bundle at all could not be checked, and is named as what it is', async (t) => {
  const text = JSON.stringify(good);
  const submission = { id: SUBMISSION_ID, leaf_sha256: 'ab'.repeat(32), status: 'witnessed' };
  const line = JSON.stringify({ submission, bundle: good });
  const isLine =
    'is a line of an export: attest verify --export checks it, and its member bundle is a bundle';
  const isObject = 'holds the lines of an export: attest verify --export checks them';
  const several = 'holds several documents, one a line (JSONL): give one bundle';
  const unbundled = 'is a submission without a bundle: fetch that with attest bundle ID';
  const documents: [document: unknown, reason: string][] = [
    [good.sigstore_bundle, 'is a Sigstore bundle, only a part of a proof bundle: cosign verifies it'],
    [submission, unbundled],
    [{ id: SUBMISSION_ID, leafSha256: 'ab'.repeat(32) }, unbundled],
    [{ ...submission, bundle: good }, 'is a submission: give its member bundle alone'],
    [{ file: 'a', submission }, 'is what attest submit printed: fetch the bundle with attest bundle ID'],
    [JSON.parse(line), isLine],
    [[good], 'is a list: give one bundle'],
    [{ data: [], next_cursor: '' }, 'is a list: give one bundle'],
    [trustRoots, 'is the trust roots, not a bundle'],
    [
      { payload: '', payloadType: 'a', signatures: [] },
      'is a signed envelope, such as the manifest of an export, and not a bundle',
    ],
    [
      { error: { code: 'bundle.not_ready', message: '' } },
      'is an error that the service answered, bundle.not_ready, and not a bundle',
    ],
  ];
  const cases: [text: string | Uint8Array, reason: string][] = [
    ...documents.map(([document, reason]): [string, string] => [JSON.stringify(document), reason]),
    [`${text}\n${text}`, several],
    [`${text}\r\n\n${text}\r\n`, several],
    [utf8(`\ufeff${text}\n${text}\n`), several],
    [`${line}\n${line}\n`, isObject],
    ['', 'is empty'],
    [new Uint8Array(), 'is empty'],
    ['not JSON', 'is not JSON, or is cut off'],
    [text.slice(0, 2_000), 'is not JSON, or is cut off'],
    [utf8(text).with(30, 0xff), 'is not text in UTF-8'],
    [' '.repeat(5 * 1024 * 1024), 'is longer than 4 MiB'],
    [`${text.slice(0, 2_000)}\n${text}`, 'is not JSON, or is cut off'],
    [`{\n${text.slice(1)}}\n`, 'is not JSON, or is cut off'],
    ['['.repeat(1_000_000) + ']'.repeat(1_000_000), 'is a list: give one bundle'],
  ];
  for (const [bundle, reason] of [...documents, ...cases]) {
    const { summary, verdict } = await verify(bundle);
    t.equal(summary, `Could not be checked: the bundle ${reason}.`);
    t.equal(verdict, 'could_not_check');
  }
});

t.test('texts of bundle, trust roots and metadata may begin with a byte order mark', async (t) => {
  const marked = (value: unknown) => `\ufeff${JSON.stringify(value)}`;
  const texts: ((text: string) => string | Uint8Array)[] = [(text) => text, utf8];
  for (const form of texts) {
    const found = await verify(form(marked(good)), {
      trustRoots: form(marked(trustRoots)),
      metadata: form(marked(METADATA)),
      metadataSalt: sample.salt,
    });
    t.equal(found.verdict, 'verified', found.summary);
    t.equal((await verify(good, { trustRoots: form(JSON.stringify(trustRoots)) })).verdict, 'verified');
  }
  t.match(await verify(`\ufeff\ufeff${JSON.stringify(good)}`), { verdict: /not/ }, 'one mark only');
  for (const [text, reason] of [
    ['\ufeff', 'is empty'],
    [JSON.stringify(trustRoots).replace('{', '{"policies":[],'), 'has a member twice'],
  ] as const) {
    const summary = `Could not be checked: the trust roots cannot be read: the document ${reason}.`;
    t.equal((await verify(good, { trustRoots: text })).summary, summary);
  }
});

t.test('empty trust roots, and windows that end before they begin, are rejected', async (t) => {
  const [key] = trustRoots.dsse_signing_keys as object[];
  const window = { valid_from: '2025-02-01T00:00:00Z', valid_to: '2025-01-01T00:00:00Z' };
  const cases: [roots: unknown, reason: string][] = [
    [{}, 'the document names no log and no signing key'],
    [good, 'the document names no log and no signing key'],
    [
      { ...trustRoots, dsse_signing_keys: [{ ...key, ...window }] },
      '/dsse_signing_keys/0 its validity ends before it begins',
    ],
  ];
  for (const [roots, reason] of cases) {
    const { verdict, summary } = await verify(good, { trustRoots: roots });
    t.equal(verdict, 'could_not_check');
    t.equal(summary, `Could not be checked: the trust roots cannot be read: ${reason}.`);
  }
});

function halves(note: string): [body: string, line: string] {
  const { text } = parseNote(note);
  return [text, note.slice(text.length + 1)];
}

function spoiled(line: string): string {
  const [dash, name, signature = ''] = line.trimEnd().split(' ');
  const bytes = Buffer.from(signature, 'base64');
  bytes[bytes.length - 1]! ^= 1;
  return `${dash} ${name} ${bytes.toString('base64')}\n`;
}

type Place = readonly string[];

/** Every place, at any depth, where two values differ. */
function differingPlaces(a: unknown, b: unknown, at: Place = []): Place[] {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return a === b ? [] : [at];
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  const inside = names.flatMap((name) => differingPlaces(get(a, [name]), get(b, [name]), [...at, name]));
  return inside.length > 0 && at.length > 0 ? [at, ...inside] : inside;
}

function get(value: unknown, place: Place): unknown {
  return place.reduce((inner, name) => (inner as Record<string, unknown> | undefined)?.[name], value);
}

function set(value: unknown, place: Place, to: unknown): void {
  Object.assign(get(value, place.slice(0, -1)) as object, { [place.at(-1)!]: structuredClone(to) });
}
