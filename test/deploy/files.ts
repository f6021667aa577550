/** The files of deploy/, and the settings that they have. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

/** The folder deploy/ of this checkout. */
export const DEPLOY = fileURLToPath(new URL('../../../deploy/', import.meta.url));

/** The settings of one part, by name. */
type Environment = Record<string, string>;
type Service = { environment?: Environment; secrets?: string[]; image: string; [member: string]: unknown };

/** The text of a file of deploy/. */
export function readDeploy(path: string): string {
  return readFileSync(join(DEPLOY, path), 'utf8');
}

/** compose.yaml, with its anchors and merge keys resolved. */
export function readCompose(): {
  services: Record<string, Service>;
  secrets: Record<string, { file: string }>;
} {
  return parse(readDeploy('compose.yaml'), { merge: true });
}

/** The settings of a file with one `NAME=value` a line. */
export function readEnvironment(text: string): Environment {
  const lines = text.split('\n').filter((line) => /^[A-Z]/.test(line));
  return Object.fromEntries(lines.map((line) => line.split(/=(.*)/s) as [string, string]));
}

/** The settings of a unit: those of its lines `Environment=`, of which each may have several. */
export function unitEnvironment(unit: string): Environment {
  const pairs = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, words = '']) => words.split(' '));
  return readEnvironment(pairs.join('\n'));
}

/** The names of the settings in the templates of the chart. */
export function chartSettings(template: string): string[] {
  return [...template.matchAll(/- \{name: ([A-Z0-9_]+), value:/g)].map(([, name = '']) => name);
}
