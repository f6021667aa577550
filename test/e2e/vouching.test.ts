import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { originHash } from '../../src/proof/log/add-checkpoint.js';
import { openCheckpoint } from '../../src/proof/log/checkpoint.js';
import { verifyCosignature } from '../../src/proof/log/cosignature.js';
import { parseVerifierKey } from '../../src/proof/log/note.js';
import { parsePolicy } from '../../src/proof/log/tlog-policy.js';
import { verifyBundle } from '../../src/proof/verify/verify.js';
import { creation } from '../server/rpc/samples.js';
import { type App, startApp } from '../support/app.js';
import { newKey } from '../support/calling/test-keys.js';
import { findFreePort } from '../support/servers/free-port.js';
import {
  startWitnessProcess,
  type WitnessProcess,
  writeWitnessKeys,
} from '../support/servers/witness-process.js';

/** A deployment: its service, and the witness that it runs for others. */
type Deployment = { name: string; port: number; settings: Record<string, string>; verifierKeys: string[] };

async function makeDeployment(t: Test, name: string): Promise<Deployment> {
  const dir = join(t.testdirName, name);
  await mkdir(dir, { recursive: true });
  const { settings, verifierKeys } = await writeWitnessKeys(dir, `witness.${name}.example`);
  return { name, port: await findFreePort(), settings, verifierKeys };
}

function startDeployment(t: Test, { name }: Deployment, witness: Deployment): Promise<App> {
  const url = `http://127.0.0.1:${witness.port}/`;
  const entry = { name: witness.name, kind: 'log_witness', url, verifier_key: witness.verifierKeys };
  return startApp(t, {
    witnesses: [],
    env: { LOG_DOMAIN: `${name}.example`, WITNESSES: JSON.stringify([entry]) },
  });
}

async function trustRootsOf(app: App) {
  const { json } = await app.rest('/verify/trust_roots.json');
  return json as {
    transparency_logs: { verifier_key: string; environment: string }[];
    log_witnesses: { name: string; verifier_key: string }[];
  };
}

async function startWitness(t: Test, { settings, port }: Deployment, logs: App): Promise<WitnessProcess> {
  const { transparency_logs } = await trustRootsOf(logs);
  const keys = transparency_logs.map(({ verifier_key }) => verifier_key).join('\n');
  return startWitnessProcess(t, { ...settings, PORT: String(port), WITNESS_LOGS: keys });
}

t.test('two deployments witness each other', async (t) => {
  t.testdir();
  const [a, b] = [await makeDeployment(t, 'a'), await makeDeployment(t, 'b')];
  const apps = [await startDeployment(t, a, b), await startDeployment(t, b, a)] as const;
  const witnesses = [await startWitness(t, a, apps[1]), await startWitness(t, b, apps[0])] as const;
  for (const [i, app] of apps.entries()) {
    const [own, other] = i === 0 ? [a, b] : [b, a];
    const { key } = await newKey(app);
    for (const round of [1, 2, 3]) {
      const digest = String(round).padStart(64, '0');
      const { json } = await app.rest('/v1/attestations', { apiKey: key, body: creation(digest) });
      await app.drain();
      const { status, json: bundle } = await app.rest(`/v1/attestations/${String(json.id)}/bundle`, {
        apiKey: key,
      });
      t.equal(status, 200);
      const trustRoots = await trustRootsOf(app);
      t.strictSame(
        trustRoots.log_witnesses.map(({ verifier_key }) => verifier_key),
        other.verifierKeys,
      );
      const verification = await verifyBundle(bundle, {
        trustRoots,
        artifactSha256: digest,
        now: new Date(),
      });
      t.equal(verification.verdict, 'verified', verification.summary);
      t.match(verification.summary, new RegExp(`according to .*${other.name}`));

      const note = (await app.rest('/verify/log/live/checkpoint')).body.toString();
      const logKey = trustRoots.transparency_logs.find(({ environment }) => environment === 'live');
      const checkpoint = await openCheckpoint(note, parseVerifierKey(logKey?.verifier_key ?? ''));
      t.equal(checkpoint.note.signatures.length, 3, 'the public checkpoint shows both cosignatures');
      for (const verifierKey of other.verifierKeys) {
        const verifier = parseVerifierKey(verifierKey);
        const times = checkpoint.note.signatures.map((line) =>
          verifyCosignature(checkpoint.note.text, line, verifier),
        );
        t.equal((await Promise.all(times)).filter((time) => time !== undefined).length, 1);
      }
      const monitored = await fetch(
        `${witnesses[1 - i]!.url}/${originHash(`live.${own.name}.example`)}/checkpoint`,
      );
      t.equal(await monitored.text(), note, 'and so does the witness');
    }
  }
  const { url, opsUrl } = witnesses[0];
  t.match(
    await (await fetch(`${opsUrl}/metrics`)).text(),
    /attest_cosigned_tree_size\{origin="live\.b\.example"\} 3/,
  );
  t.equal((await fetch(`${opsUrl}/readyz`)).status, 200);
  t.equal((await fetch(`${url}/metrics`)).status, 404);
  for (const name of ['policy', 'policy.test']) {
    const policy = parsePolicy((await apps[0].rest(`/verify/${name}`)).body.toString());
    t.match(policy, {
      logs: [{ key: { name: `${name === 'policy' ? 'live' : 'test'}.a.example` } }],
      quorum: 'b',
    });
    t.equal(policy.witnesses.length, 2);
  }
  for (const witness of witnesses) t.equal(await witness.stop(), 0);
});
