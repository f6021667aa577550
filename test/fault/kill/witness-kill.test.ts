import t from 'tap';
import { verifyCosignature } from '../../../src/proof/log/cosignature.js';
import { parseSignatureLines, parseVerifierKey } from '../../../src/proof/log/note.js';
import {
  startWitnessProcess,
  type WitnessProcess,
  writeWitnessKeys,
} from '../../support/servers/witness-process.js';
import { until } from '../../support/until.js';
import { growLog, type History } from '../../support/witnesses/grown-log.js';

const ROUNDS = 12;
const MAX_SIZE = 2_000;

type Cosigned = { history: number; size: number; answer: string };

t.test('killed at any instant, a witness signs one history of a log', async (t) => {
  const log = growLog('live.log.example', MAX_SIZE);
  const histories: History[] = [log, log.fork(0), log.fork(40)];
  const made = await writeWitnessKeys(t.testdir(), 'witness.example/w1', ['ed25519']);
  const settings = { ...made.settings, WITNESS_LOGS: log.verifierKey };
  const cosigned: Cosigned[] = [];
  let key = '';
  for (let round = 0; round < ROUNDS; round++) {
    // Two processes share the folder, as at a restart that overlaps.
    const running = await Promise.all([startWitnessProcess(t, settings), startWitnessProcess(t, settings)]);
    key = running[0].verifierKeys[0] ?? '';
    const feeding = histories.flatMap((history, i) =>
      running.map((witness) =>
        feed(witness, history, (size, answer) => cosigned.push({ history: i, size, answer })),
      ),
    );
    const before = cosigned.length;
    await until('some are cosigned', () => cosigned.length > before + (round % 5));
    await Promise.all(running.map((witness) => witness.kill()));
    await Promise.all(feeding);
  }
  t.ok(cosigned.length > ROUNDS, `${cosigned.length} checkpoints were cosigned`);
  const verifier = parseVerifierKey(key);
  const roots = new Map<number, string>();
  for (const { history, size, answer } of cosigned) {
    const body = histories[history]!.body(size);
    const [line] = parseSignatureLines(answer);
    t.ok(await verifyCosignature(body, line!, verifier));
    const known = roots.get(size) ?? body;
    if (known !== body) t.fail(`two histories are signed at size ${size}`);
    roots.set(size, known);
  }
  // The first fork shares nothing with the others, the second only its beginning.
  const beyond = new Set(cosigned.filter(({ size }) => size > 40).map(({ history }) => history));
  t.equal(beyond.size, 1, 'all of them are of one history');

  const last = await startWitnessProcess(t, settings);
  const largest = Math.max(...cosigned.map(({ size }) => size));
  const response = await post(last, log.request(0, 1));
  t.equal(response.status, 409);
  t.ok(Number(await response.text()) >= largest, 'and nothing that was signed is forgotten');
  t.equal(await last.stop(), 0);
});

/** Feeds a history as far as the witness takes it, until it is gone. */
async function feed(
  witness: WitnessProcess,
  history: History,
  onCosigned: (size: number, answer: string) => void,
): Promise<void> {
  let from = 0;
  try {
    for (;;) {
      const size = Math.min(from + 3, MAX_SIZE);
      const response = await post(witness, history.request(from, size));
      const answer = await response.text();
      if (response.status === 200) onCosigned(size, answer);
      if (response.status === 200) from = size;
      if (response.status === 409) from = Number(answer);
      if (response.status === 422) return;
    }
  } catch {
    // It was killed.
  }
}

function post({ url }: WitnessProcess, body: string): Promise<Response> {
  return fetch(`${url}/add-checkpoint`, { method: 'POST', body });
}
