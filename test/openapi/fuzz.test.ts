import type { JsonValue } from '@bufbuild/protobuf';
import fc from 'fast-check';
import t from 'tap';
import { type Known, makeChangeable, makeExports, makeWebhooks, NOTHING } from '../server/rpc/samples.js';
import { submitWitnessed } from '../server/rpc/submitting.js';
import { startApp } from '../support/app.js';
import type { RestAnswer } from '../support/calling/rpc-clients.js';
import { newKey } from '../support/calling/test-keys.js';
import { FUZZ } from '../support/fuzz.js';
import { type Operation, openContract } from '../support/judging/contract.js';
import { assertNoLeaks } from '../support/judging/recorder.js';
import { arbitraryRequest, type FuzzRequest } from './arbitrary.js';

const app = await startApp(t);
const contract = openContract((await app.rest('/openapi.json')).json);
const owner = await newKey(app);
const keys = { owner: owner.key, stranger: (await newKey(app)).key, nobody: undefined };
const pool = Object.values({ ...NOTHING, ...(await ownSomething()) });

async function ownSomething(): Promise<Partial<Known>> {
  const [rest] = app.surfaces();
  if (rest === undefined) throw new Error('there is no REST surface');
  const { id } = await submitWitnessed(app, owner);
  const { json } = await app.rest(`/v1/attestations/${id}`, { apiKey: owner.key });
  const changeable = await makeChangeable(rest, owner.key);
  const webhooks = await makeWebhooks(rest, owner.key);
  const exports = await makeExports(t, rest, owner.key);
  return { submissionId: id, batchId: String(json.batch_id), ...changeable, ...webhooks, ...exports };
}

function sendFuzzed({ method, path }: Operation, request: FuzzRequest): Promise<RestAnswer> {
  const { body, query, who, headers, isHead } = request;
  const filled = path.replace(/\{([^}]+)\}/g, (_, name: string) =>
    encodeURIComponent(request.path[name] ?? ''),
  );
  const pairs = query.map((pair) => pair.map(encodeURIComponent).join('='));
  const bytes = body && ('bytes' in body ? body.bytes : Buffer.from(JSON.stringify(body.json)));
  return app.rest(pairs.length === 0 ? filled : `${filled}?${pairs.join('&')}`, {
    method: isHead ? 'HEAD' : method,
    apiKey: keys[who],
    headers,
    body: bytes,
  });
}

/** What of the request is not as the document says; what it cannot say is left out. */
function findUndocumented({ body, parameters }: Operation, request: FuzzRequest): string[] {
  const names = new Set<string>();
  const wrong = request.query.flatMap(([name, text]) => {
    const parameter = parameters.find((candidate) => candidate.in === 'query' && candidate.name === name);
    if (parameter === undefined) return [`the parameter ${name}`];
    if (names.has(name)) return [`${name} twice`];
    names.add(name);
    // Empty, it is as if it were left out.
    if (text === '' && !parameter.required) return [];
    const isNumber = parameter.schema.type === 'integer' && /^-?\d+$/.test(text);
    return contract.findMisfits(parameter.schema, isNumber ? Number(text) : text);
  });
  if (body === undefined || request.body === undefined || 'bytes' in request.body) return wrong;
  return [...wrong, ...contract.findMisfits(body.schema, request.body.json as JsonValue)];
}

/** Whether a misfit is in an item of a batch that failed by itself. */
function isOfFailedItem(misfit: string, { json }: RestAnswer): boolean {
  const [, place] = /^\/items\/(\d+)\b/.exec(misfit) ?? [];
  const { results } = json as { results?: { outcome: string }[] };
  return results?.[Number(place)]?.outcome === 'failed';
}

t.comment(`FUZZ_SEED=${FUZZ.seed} FUZZ_CASES=${FUZZ.cases}`);

/** Those that delete come last, lest the others find nothing. */
const isDeleting = ({ method }: Operation) => Number(method === 'DELETE');

for (const operation of contract.operations.toSorted((a, b) => isDeleting(a) - isDeleting(b))) {
  t.test(`${operation.id} answers any request with a documented response, and no 5xx`, async (t) => {
    const outcomes = new Map<number, number>();
    await fc.assert(
      fc.asyncProperty(arbitraryRequest(contract, operation, pool), async (request) => {
        const answer = await sendFuzzed(operation, request);
        const { status } = answer;
        outcomes.set(status, (outcomes.get(status) ?? 0) + 1);
        const problems = contract.findProblems(operation, answer, request.isHead ? 'HEAD' : operation.method);
        if (problems.length > 0) throw new Error(problems.join('\n'));
        if (status >= 500) throw new Error(`answered ${status}`);
        const misfits = status < 300 ? findUndocumented(operation, request) : [];
        const undocumented = misfits.filter((misfit) => !isOfFailedItem(misfit, answer));
        if (undocumented.length > 0) throw new Error(`${status} in spite of ${undocumented.join(', ')}`);
      }),
      { seed: FUZZ.seed, numRuns: FUZZ.cases },
    );
    t.pass([...outcomes].map(([status, times]) => `${status}: ${times}`).join(', '));
  });
}

t.test('there was no internal error, and no secret in a response', async (t) =>
  assertNoLeaks(t, app.recorder),
);
