/** deploy/ as others' programs take it: the chart by Helm and kubeconform, the image by buildah and podman. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findFreePort } from '../../support/servers/free-port.js';
import { until } from '../../support/until.js';
import { growLog } from '../../support/witnesses/grown-log.js';
import { run, runOrThrow, type Said } from '../command.js';
import { accepting, type Row, refusing } from '../rows.js';
import { CHECKOUT, FOLDER, tool } from '../tools.js';
import { KUBERNETES, writeSchemas } from './schemas.js';

const CHART = join(CHECKOUT, 'deploy/helm');
const EXAMPLE = ['-f', join(CHART, 'examples/values.yaml')];
const SMALLEST = [
  'baseUrl=https://a.example',
  'logDomain=a.example',
  'register.url=https://w',
  'register.key=k',
];

/** The chart with its example and with the least that it needs; values that it must refuse. */
export async function checkChart({ dir }: { dir: string }): Promise<Row[]> {
  const schemas = join(dir, 'schemas');
  await writeSchemas(schemas);
  const small = ['--set', SMALLEST.join(',')];
  const template = (...values: string[]) =>
    run(tool('helm'), ['template', 'attest', CHART, '--kube-version', KUBERNETES, ...values]);
  const validate = async (values: string[], change = (text: string) => text): Promise<Said> => {
    const file = join(dir, 'rendered.yaml');
    await writeFile(file, change((await template(...values)).output));
    const location = join(schemas, '{{ .ResourceKind }}{{ .KindSuffix }}.json');
    return run(tool('kubeconform'), [
      '-strict',
      '-summary',
      '-skip',
      'PodMonitor',
      '-schema-location',
      location,
      file,
    ]);
  };
  const misspelt = (text: string) => text.replaceAll('replicas:', 'replica:');
  return [
    accepting('helm', 'lint', await run(tool('helm'), ['lint', '--strict', CHART, ...EXAMPLE]), [
      /0 chart\(s\) failed/,
    ]),
    refusing('helm', 'a chart without an address', await template(), [/baseUrl/]),
    refusing('helm', 'a value that there is not', await template(...small, '--set', 'replica=3'), [
      /replica/,
    ]),
    accepting('kubeconform', 'the example', await validate(EXAMPLE), [/Valid: 13, Invalid: 0/]),
    accepting('kubeconform', 'the least', await validate(small), [/Invalid: 0, Errors: 0/]),
    refusing('kubeconform', 'a misspelt member', await validate(small, misspelt), [/'replica' not allowed/]),
  ];
}

const [BASE, IMAGE] = ['localhost/attest-interop-base:24', 'localhost/attest-interop:dev'];

/** The image over a base that debootstrap made: built, started read-only, its health read. Only for root, with the tools. */
export async function checkImage({ dir }: { dir: string }): Promise<Row[]> {
  const tools = ['debootstrap', 'buildah', 'podman', 'runc'];
  const lacking = await Promise.all(tools.map((name) => run('which', [name])));
  if (process.getuid?.() !== 0 || lacking.some(({ code }) => code !== 0)) {
    console.log(`the image is not built: that needs root and ${tools.join(', ')}`);
    return [];
  }
  await buildBase();
  await runOrThrow('npx', ['tsx', 'src/generate/packages/pack.ts'], { cwd: CHECKOUT });
  const args = [
    'bud',
    '--isolation',
    'chroot',
    '--network',
    'host',
    '--format',
    'docker',
    '--build-arg',
    `BASE=${BASE}`,
  ];
  const built = await run('buildah', [...args, '-f', 'deploy/Dockerfile', '-t', IMAGE, '.'], {
    cwd: CHECKOUT,
  });
  return [
    accepting('buildah', 'deploy/Dockerfile', built, [/Successfully tagged/]),
    accepting(
      'podman',
      'user 1000, git and ssh',
      await inImage(['sh', '-c', 'id -u; git --version; ssh -V']),
      [/^1000$/m, /^git version/m, /^OpenSSH/m],
    ),
    refusing('podman', 'writing to the root', await inImage(['touch', '/opt/x']), [/Read-only/]),
    ...(await checkHealth(dir)),
  ];
}

async function buildBase(): Promise<void> {
  const there = await run('podman', ['image', 'exists', BASE]);
  if (there.code === 0) return;
  console.log('making the base of the image with debootstrap; this takes some minutes');
  const folder = join(FOLDER, 'image-base');
  await runOrThrow('sh', [join(CHECKOUT, 'test/interop/deploy/build-base.sh'), folder, BASE]);
}

/** Where systemd is not there, podman needs to be told so. */
const ENGINE = ['--runtime', 'runc', '--cgroup-manager', 'cgroupfs', '--events-backend', 'file'];
const READ_ONLY = [
  '--read-only',
  '--tmpfs',
  '/tmp',
  '--cap-drop',
  'all',
  '--security-opt',
  'no-new-privileges',
];
const LIMITS = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=1024:1024'];

function inImage([command = '', ...args]: string[]): Promise<Said> {
  const options = ['--rm', '--network', 'none', '--no-healthcheck', '--entrypoint', command];
  return run('podman', [...ENGINE, 'run', ...READ_ONLY, ...LIMITS, ...options, IMAGE, ...args]);
}

/** `attest witness` needs no other server. */
async function checkHealth(dir: string): Promise<Row[]> {
  const folder = join(dir, 'witness');
  await mkdir(folder);
  await runOrThrow(tool('attest'), [
    'witness',
    'new-key',
    '--name',
    'w.example/w',
    '--algorithm',
    'ed25519',
    join(folder, 'key.pem'),
  ]);
  await writeFile(join(folder, 'logs.txt'), growLog('live.example', 1).verifierKey);
  await runOrThrow('chown', ['-R', '1000:1000', folder]);
  const settings = {
    WITNESS_NAME: 'w.example/w',
    WITNESS_KEY_FILE: '/run/witness/key.pem',
    WITNESS_LOGS: '/run/witness/logs.txt',
    WITNESS_HISTORY: '/run/witness/history',
    PORT: String(await findFreePort()),
    OPS_PORT: String(await findFreePort()),
  };
  const env = Object.entries(settings).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  const options = ['--detach', '--network', 'host', '--volume', `${folder}:/run/witness`, ...env];
  const started = await runOrThrow('podman', [
    ...ENGINE,
    'run',
    ...READ_ONLY,
    ...LIMITS,
    ...options,
    IMAGE,
    'witness',
  ]);
  const container = started.match(/^[0-9a-f]{64}$/m)?.[0] ?? '';
  try {
    const health = () => run('podman', [...ENGINE, 'healthcheck', 'run', container]);
    const well = await until('the container is well', async () => {
      const said = await health();
      return said.code === 0 && said;
    });
    const ill = await inImage(['node', '/opt/attest/health.mjs', 'livez']);
    const stopped = await run('podman', [...ENGINE, 'stop', '--time', '20', container]);
    const { output } = await run('podman', [
      ...ENGINE,
      'inspect',
      '--format',
      'exit {{.State.ExitCode}}',
      container,
    ]);
    return [
      accepting('podman', 'the health of a read-only container', well, []),
      refusing('podman', 'that of one in which nothing runs', ill, [/ECONNREFUSED/]),
      accepting('podman', 'SIGTERM', { ...stopped, output }, [/exit 0/]),
    ];
  } finally {
    await run('podman', [...ENGINE, 'rm', '--force', container]);
  }
}
