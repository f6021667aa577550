/** Prometheus itself, which scrapes processes twice a second and evaluates the shipped rules as often. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { PROMETHEUS } from '../foreign/promtool.js';
import { findFreePort } from '../servers/free-port.js';
import { until } from '../until.js';
import { RULES } from './alerts.js';

export type Prometheus = {
  /** The samples that an instant query gives, as their labels. */
  query(expr: string): Promise<Record<string, string>[]>;
  /** The names of the alerts that fire, in order. */
  firing(): Promise<string[]>;
};

type Vector = { data: { result: { metric: Record<string, string> }[] }; error?: string };
type Alerts = { data: { alerts: { state: string; labels: { alertname: string } }[] } };

/** Starts it until the test ends. Alerts do not wait before they fire. */
export async function startPrometheus(
  t: Pick<Test, 'teardown'>,
  processes: Readonly<Record<string, { opsUrl: string }>>,
): Promise<Prometheus> {
  const dir = await mkdtemp(join(tmpdir(), 'attest-prometheus-'));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  const rules = (await readFile(RULES, 'utf8')).replace(/^ +(?:for|interval): .*\n/gm, '');
  await writeFile(join(dir, 'rules.yaml'), rules);
  const targets = Object.entries(processes).map(([instance, { opsUrl }]) => ({
    targets: [new URL(opsUrl).host],
    labels: { instance },
  }));
  const config = {
    global: { scrape_interval: '500ms', scrape_timeout: '500ms', evaluation_interval: '500ms' },
    rule_files: ['rules.yaml'],
    scrape_configs: [{ job_name: 'attest', static_configs: targets }],
  };
  // JSON is YAML.
  await writeFile(join(dir, 'prometheus.yml'), JSON.stringify(config));
  const port = await findFreePort();
  const child = spawn(
    PROMETHEUS,
    [
      `--config.file=${join(dir, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(dir, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: 'ignore' },
  );
  t.teardown(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  const get = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).json();
  await until('Prometheus is ready', async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/-/ready`).catch(() => undefined);
    return answer?.ok;
  });
  return {
    query: async (expr) => {
      const { data, error } = (await get(`/api/v1/query?query=${encodeURIComponent(expr)}`)) as Vector;
      if (error !== undefined) throw new Error(`${expr}: ${error}`);
      return data.result.map(({ metric }) => metric);
    },
    firing: async () => {
      const { data } = (await get('/api/v1/alerts')) as Alerts;
      const firing = data.alerts.filter(({ state }) => state === 'firing');
      return [...new Set(firing.map(({ labels }) => labels.alertname))].sort();
    },
  };
}
