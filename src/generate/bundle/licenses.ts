import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const PACKAGE = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;
const LICENSE_FILE = /^(?:licen[cs]e|copying|notice)/i;

/** The file beside a bundle that holds the licences of the packages in it. */
export const LICENSES = 'THIRD_PARTY_LICENSES';

/** The licences of the npm packages that these files (paths from `root`) belong to, each under its name and version. */
export function collectLicenses(root: string, files: readonly string[]): string {
  const folders = new Set(files.flatMap((file) => PACKAGE.exec(file)?.[0] ?? []));
  return [...folders]
    .map((folder) => describePackage(join(root, folder)))
    .sort()
    .join(`\n${'-'.repeat(80)}\n\n`);
}

/** Throws if the package names no licence. */
function describePackage(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  if (typeof license !== 'string') throw new Error(`${name} names no licence`);
  const files = readdirSync(folder).filter(
    (file) => LICENSE_FILE.test(file) && existsSync(join(folder, file)),
  );
  const texts = files.map((file) => `\n${readFileSync(join(folder, file), 'utf8').trim()}\n`);
  return `${name} ${version} (${license})\n${texts.join('')}`;
}
