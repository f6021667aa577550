/** Exports to a store that was not written for us: versitygw, over a folder. */
import type { OpenDestination } from '../../src/server/exports/destinations/destination.js';
import { raceWrites } from '../../src/server/exports/destinations/race.js';
import { objectOf, openBucket, randomContent, writing } from '../support/exports/s3/fixture.js';
import { accepting, type Row, refusing } from './rows.js';
import { startVersitygw, VERSITYGW } from './storage/versitygw.js';

const MIB = 1024 * 1024;
const IN_PARTS = { multipartBytes: 6 * MIB, partBytes: 5 * MIB };
const STORE = VERSITYGW;

/** A probe, the revisions of an object, and an object in parts. */
export async function checkExports({ dir }: { dir: string }): Promise<Row[]> {
  const stops: (() => unknown)[] = [];
  const after = { teardown: (stop: () => unknown) => void stops.push(stop) };
  try {
    const url = await startVersitygw(dir, after);
    const bucket = await openBucket(after, { url }, {}, IN_PARTS);
    const stranger = await openBucket(after, { url }, { secretAccessKey: 'not/the/secret' });
    return [
      await probing('a probe', bucket),
      await probing('another probe', bucket),
      await racing(bucket),
      await writingInTurn('an object', bucket, 1000),
      await writingInTurn('an object in parts', bucket, 12 * MIB),
      refusing(STORE, 'a wrong secret', await saidBy(() => stranger.probe(writing().signal))),
    ];
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

async function probing(what: string, bucket: OpenDestination): Promise<Row> {
  return accepting(STORE, what, await saidBy(() => bucket.probe(writing().signal)), []);
}

async function racing({ store }: OpenDestination): Promise<Row> {
  const said = await saidBy(
    async () => `${store && (await raceWrites(store, 'race', writing().signal))} races`,
  );
  return accepting(STORE, 'writers that race on one condition', said, [/^10 races$/]);
}

/** Of revisions 1, 3 and 2 the second remains. */
async function writingInTurn(what: string, bucket: OpenDestination, bytes: number): Promise<Row> {
  const said = await saidBy(async () => {
    const outcomes: string[] = [];
    for (const revision of [1, 3, 3, 2]) {
      const object = objectOf(revision === 3 ? Buffer.alloc(bytes, 3) : randomContent(bytes), {
        name: `copies/${bytes}`,
        revision,
      });
      outcomes.push((await bucket.write(object, writing())).outcome);
    }
    return outcomes.join(' ');
  });
  return accepting(STORE, `${what}, replaced by later revisions`, said, [
    /^written written written superseded$/,
  ]);
}

async function saidBy(work: () => Promise<unknown>) {
  return work().then(
    (result) => ({ code: 0, output: String(result) }),
    (error: Error) => ({ code: 1, output: error.message }),
  );
}
