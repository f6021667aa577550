/** Fetches bundles of what was acknowledged, through the API, and has each checked. */
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Bundle,
  checkByForeignTools,
  checkByHand,
  checkByVerifier,
  type Subject,
} from '../judge/check-bundle.js';
import { fetchRoots, type Roots } from '../judge/observe.js';
import type { Acknowledged } from '../record.js';
import type { Scene } from '../scene/scene.js';
import { type Answer, call, isPassing } from './call.js';
import { createShown } from './watch.js';

export type BundlesChecked = { verified: number; foreign: number; problems: string[]; samples: Sample[] };
/** A bundle with what it has to be about. */
export type Sample = { bundle: Bundle; subject: Subject };

const AT_ONCE = 8;
/** One in so many is given to openssl and to Sigstore's verifier as well. */
const FOREIGN_EVERY = 50;
const SAMPLES = 20;
const ATTEMPTS = 5;

/** Those that were there before the first fault are trusted by the check by hand; newer ones by the verifier. */
export async function checkBundles(
  scene: Scene,
  pinned: Roots,
  acknowledged: readonly Acknowledged[],
  progress: (done: number, of: number) => void,
): Promise<BundlesChecked> {
  const api = scene.apis()[0]!;
  const roots = await fetchRoots(api);
  const trusted = { live: await fetchTrusted(api, ''), test: await fetchTrusted(api, '.test') };
  const owners = new Map(scene.owners.map((owner) => [owner.name, owner]));
  const shown = createShown(scene.record);
  const done: BundlesChecked = { verified: 0, foreign: 0, problems: [], samples: [] };
  const all = [...new Map(acknowledged.map((made) => [made.id, made])).values()];
  let next = 0;
  const work = async () => {
    for (let i = next++; i < all.length; i = next++) {
      const made = all[i]!;
      const { apiKey, environment } = owners.get(made.owner)!;
      const answer = await fetchBundle(`${api}/v1/attestations/${made.id}/bundle`, apiKey);
      if (answer.status !== 200) {
        done.problems.push(`${made.id}: its bundle is answered with ${answer.status} ${answer.text}`);
        continue;
      }
      const bundle = JSON.parse(answer.text) as Bundle;
      const subject: Subject = { ...made, environment };
      for (const { note } of bundle.checkpoints) shown(environment, note, `bundle of ${made.id}`);
      done.problems.push(...checkByHand(bundle, subject, pinned));
      done.problems.push(...(await checkByVerifier(bundle, subject, roots)));
      if (i % FOREIGN_EVERY === 0) {
        done.problems.push(...checkByForeignTools(bundle, subject, roots, trusted[environment]));
        done.foreign++;
      }
      if (done.samples.length < SAMPLES) done.samples.push({ bundle, subject });
      done.verified++;
      progress(done.verified, all.length);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return done;
}

/** Nothing is broken any more, but a connection that was may be found out only now. */
async function fetchBundle(url: string, apiKey: string): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    const answer = await call(url, { apiKey, timeoutMs: 60_000 });
    if (!isPassing(answer) || attempt === ATTEMPTS) return answer;
    await delay(1_000);
  }
}

async function fetchTrusted(api: string, suffix: string): Promise<unknown> {
  return (await fetch(`${api}/verify/trusted_root${suffix}.json`)).json();
}
