/** The schemas of Kubernetes' objects for kubeconform, made of the OpenAPI document in Kubernetes' own Go module. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runOrThrow } from '../command.js';

export const KUBERNETES = '1.33.6';

type Schema = { [key: string]: unknown };
type Kind = { group: string; kind: string; version: string };

/** Writes `<kind>-<group>-<version>.json` for each kind into `folder`; members that a schema does not name are errors. */
export async function writeSchemas(folder: string): Promise<void> {
  const module = `k8s.io/kubernetes@v${KUBERNETES}`;
  const { Dir } = JSON.parse(await runOrThrow('go', ['mod', 'download', '-json', module])) as { Dir: string };
  const text = await readFile(join(Dir, 'api/openapi-spec/swagger.json'), 'utf8');
  const { definitions } = JSON.parse(text) as { definitions: Record<string, Schema> };
  await mkdir(folder, { recursive: true });
  const strict = Object.fromEntries(Object.entries(definitions).map(([name, one]) => [name, strictly(one)]));
  await writeFile(join(folder, 'definitions.json'), JSON.stringify({ definitions: strict }));
  for (const [name, schema] of Object.entries(definitions)) {
    const kinds = (schema['x-kubernetes-group-version-kind'] ?? []) as Kind[];
    // Options of requests belong to all groups, objects to one.
    if (kinds.length !== 1) continue;
    const { group, kind, version } = kinds[0]!;
    const parts = [kind, group.split('.')[0], version].filter((part) => part !== '');
    const ref = { $ref: `definitions.json#/definitions/${name}` };
    await writeFile(join(folder, `${parts.join('-').toLowerCase()}.json`), JSON.stringify(ref));
  }
}

const BY_FORMAT = new Map<unknown, Schema>([['int-or-string', { type: ['string', 'integer'] }]]);
const QUANTITY = /^Quantity is a fixed-point/;

function strictly(schema: Schema): Schema {
  if (QUANTITY.test(String(schema.description))) return { type: ['string', 'number'] };
  const { properties } = schema as { properties?: Record<string, Schema> };
  const strict: Schema = { ...schema, ...BY_FORMAT.get(schema.format) };
  if (properties === undefined) return strict;
  const members = Object.entries(properties).map(([name, one]) => [
    name,
    { ...one, ...BY_FORMAT.get(one.format) },
  ]);
  return { ...strict, properties: Object.fromEntries(members), additionalProperties: false };
}
