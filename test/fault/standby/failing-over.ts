/** Fails over: the synchronous standby is away while commits wait, they end on the primary alone, and it is promoted. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Test } from 'tap';
import { startApp } from '../../support/app.js';
import { type StandbyPair, startStandbyPair } from '../../support/standby/standby-pair.js';
import { assertKept, openClient, type Request } from './client.js';

/** What ends the commits that wait; called once, and to end when `isOver`. */
export type End = (pair: StandbyPair, isOver: () => boolean) => Promise<void>;

/** How long it is left to happen before requests are sent again. */
const HAPPENS_MS = 500;
/** Creates, beside the other requests. */
const IN_FLIGHT = [1, 8];

/** A test for each, with one create in flight and with several. */
export function testEnds(t: Test, ends: Record<string, End>): void {
  for (const [what, end] of Object.entries(ends)) {
    for (const inFlight of IN_FLIGHT) {
      t.test(`what is acknowledged survives when ${what}, with ${inFlight} in flight`, (t) =>
        failOver(t, inFlight, end),
      );
    }
  }
}

async function failOver(t: Test, inFlight: number, end: End): Promise<void> {
  const pair = await startStandbyPair(t);
  const app = await startApp(t, { databaseUrl: pair.url });
  const client = await openClient(app);
  const redactable = await client.makeSubmission();
  const correctable = [await client.makeInvalid(), await client.makeInvalid()] as const;
  await app.drain();
  pair.takeStandbyAway();
  const requests: Request[] = [
    ...Array.from({ length: inFlight }, (_, i) => client.create(i % 2 === 0)),
    client.createBatch(2),
    client.redact(redactable),
    client.correct(correctable[0], true),
    client.correct(correctable[1], false),
    client.createWebhook(),
  ];
  const statuses: (number | 'broken')[] = [];
  const sendAll = async () => {
    for (const answer of await Promise.all(requests.map((send) => send())))
      statuses.push(answer === 'broken' ? answer : answer.status);
  };
  const first = sendAll();
  await pair.untilCommitsWait();
  let isOver = false;
  const ending = end(pair, () => isOver);
  await Promise.race([ending, delay(HAPPENS_MS)]);
  await Promise.all([first, sendAll()]);
  isOver = true;
  await ending;
  t.comment(`answers: ${statuses}`);
  await pair.promoteStandby();
  await assertKept(t, app, client);
}
