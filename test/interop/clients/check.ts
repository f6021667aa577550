/** REST clients that others' generators make of the OpenAPI document, with the commands of docs/sdks.md. */
import { randomBytes } from 'node:crypto';
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeBlocks } from '../../support/source/pages.js';
import { readReceipt } from '../receipt-checks.js';
import { accepting, type Row } from '../rows.js';
import { fetchText, type Scene } from '../scene.js';
import { CHECKOUT, PYTHON, paste } from '../tools.js';

/** A generator: shell lines that compile its client, and start the program beside this file with it. */
type Generator = {
  /** The folder of the program. */
  name: string;
  /** What its line in docs/sdks.md has. */
  line: readonly string[];
  compile: string;
  start: string;
};

const PYTHON_PROGRAM = 'PYTHONPATH=api "$PYTHON/bin/python"';
const GO = { compile: 'go vet . ./api && go build -o client .', start: './client' };
const TYPESCRIPT = {
  compile: `tsc-of-clients --outDir out --strict --target ES2022 --module NodeNext --lib ES2022,DOM,DOM.Iterable \\
    --types node --typeRoots "$CHECKOUT/node_modules/@types" main.ts`,
  start: 'node out/main.js',
};
/** openapi-generator writes a default_api.py of the webhooks that is no Python, and that nothing imports. */
const PYTHON_CLIENT = {
  compile: `${PYTHON_PROGRAM} -m compileall -q -x default_api api main.py`,
  start: `${PYTHON_PROGRAM} main.py`,
};

const GENERATORS: readonly Generator[] = [
  { name: 'openapi-generator-python', line: ['openapi-generator', '-g python'], ...PYTHON_CLIENT },
  {
    name: 'openapi-generator-java',
    line: ['openapi-generator', '-g java'],
    compile: `cp Main.java api/src/main/java/ && cd api &&
      mvn --quiet --batch-mode -DskipTests compile dependency:build-classpath -Dmdep.outputFile=classpath`,
    start: 'java -cp "api/target/classes:$(cat api/classpath)" Main',
  },
  { name: 'openapi-generator-go', line: ['openapi-generator', '-g go'], ...GO },
  {
    name: 'openapi-generator-typescript-fetch',
    line: ['openapi-generator', '-g typescript-fetch'],
    ...TYPESCRIPT,
  },
  { name: 'openapi-python-client', line: ['openapi-python-client'], ...PYTHON_CLIENT },
  { name: 'oapi-codegen', line: ['oapi-codegen'], ...GO },
  { name: 'hey-api', line: ['openapi-ts'], ...TYPESCRIPT },
];

const SDKS = join(CHECKOUT, 'docs/sdks.md');
const PROGRAMS = join(CHECKOUT, 'test/interop/clients');

/** Each generates, compiles, and lists, submits and downloads; the receipt that it saved is one for scitt-cose. */
export async function checkGeneratedClients(scene: Scene): Promise<Row[]> {
  const [block = ''] = await codeBlocks(SDKS, 'sh');
  const config = (await codeBlocks(SDKS, 'yaml')).at(-1) ?? '';
  const document = await fetchText(`${scene.service.baseUrl}/openapi.json`);
  const rows: Row[] = [];
  for (const generator of GENERATORS) {
    const { name, line } = generator;
    const generate = block.split('\n').find((text) => line.every((part) => `${text} `.includes(`${part} `)));
    if (generate === undefined) throw new Error(`docs/sdks.md has no line for ${name}`);
    const folder = join(scene.dir, 'clients', name);
    await cp(join(PROGRAMS, name), folder, { recursive: true });
    await writeFile(join(folder, 'openapi.json'), document);
    await writeFile(join(folder, 'openapi-python-client.yaml'), `post_hooks: []\n${config}`);
    rows.push(...(await checkClient(scene, generator, generate, folder)));
  }
  return rows;
}

/** The rows up to the first step that fails. */
async function checkClient(
  scene: Scene,
  { name, compile, start }: Generator,
  generate: string,
  folder: string,
): Promise<Row[]> {
  const { service, apiKey, bundle } = scene;
  const env = { ATTEST_URL: service.baseUrl, ATTEST_API_KEY: apiKey, PYTHON, CHECKOUT };
  const digest = randomBytes(32).toString('hex');
  const steps: [what: string, script: string, says: RegExp[]][] = [
    ['generates a client', generate, []],
    ['its client compiles', compile, []],
    [
      'its client lists, submits and downloads',
      `${start} ${digest} ${bundle.submission.id}`,
      [/^listed sub_/m, /^created sub_/m],
    ],
  ];
  const rows: Row[] = [];
  for (const [what, script, says] of steps) {
    const row = accepting(name, what, await paste(script, folder, env), says);
    rows.push(row);
    if (!row.isRight) return rows;
  }
  const said = await readReceipt(scene, folder);
  return [
    ...rows,
    accepting('scitt-cose', `the receipt that the client of ${name} saved`, said, [/ok +: True/]),
  ];
}
