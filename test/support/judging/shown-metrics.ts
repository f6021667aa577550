/** What the shipped rules and the dashboard read, and whether scrapes show it. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parse } from 'yaml';
import { RULES, type Scrapes } from './alerts.js';

const DASHBOARD = resolve('deploy/grafana/attest.json');

type Rules = { groups: { rules: { expr: string; alert?: string }[] }[] };
type Dashboard = { panels: { title: string; targets?: { expr: string }[] }[] };

const readRules = async () =>
  (parse(await readFile(RULES, 'utf8')) as Rules).groups.flatMap(({ rules }) => rules);

/** The names of all alerts of the rules. */
export async function alertNames(): Promise<string[]> {
  return (await readRules()).flatMap(({ alert }) => alert ?? []);
}

/** The expressions of the rules. */
export async function ruleExpressions(): Promise<string[]> {
  return (await readRules()).map(({ expr }) => expr);
}

/** The expressions of the dashboard's panels, with everything chosen. */
export async function panelExpressions(): Promise<{ title: string; expr: string }[]> {
  const { panels } = JSON.parse(await readFile(DASHBOARD, 'utf8')) as Dashboard;
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({
      title,
      expr: expr.replaceAll(/\$(?:job|instance)\b/g, '.*').replaceAll('$__rate_interval', '1m'),
    })),
  );
}

const METRIC = /\b((?:attest|process|nodejs)_\w+)(?:\{([^}]*)\})?/g;

/** What an expression reads that no scrape shows: metrics by their name, labels as `metric{label}`. */
export function findMissing(expr: string, scrapes: Scrapes): string[] {
  const lines = Object.values(scrapes).flatMap((text = '') => text.split('\n'));
  return [...expr.matchAll(METRIC)].flatMap(([, name = '', selector = '']) => {
    const metric = name.replace(/_(?:bucket|count|sum)$/, '');
    const isShown = lines.some(
      (line) => line.startsWith(`# TYPE ${name} `) || line.startsWith(`# TYPE ${metric} `),
    );
    if (!isShown) return [name];
    const sample = lines.find((line) => line.startsWith(`${name}{`));
    // A metric of what there is none of.
    if (sample === undefined) return [];
    const labels = [...selector.matchAll(/(\w+)=/g)].map(([, label = '']) => label);
    return labels
      .filter((label) => !['job', 'instance'].includes(label) && !new RegExp(`[{,]${label}="`).test(sample))
      .map((label) => `${name}{${label}}`);
  });
}
