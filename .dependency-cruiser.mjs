/** Which room of src may import which: the ranks of docs/architecture.md, for dependency-cruiser. */

const inServer = (...rooms) => rooms.map((room) => `server/${room}`);

const BASE = ['protocol', 'server/telemetry', 'server/core', 'server/keys', 'config'];
const PURE = ['proof', ...inServer('schema', 'json', 'net')];
/** What features share, each on those before it from `jobs` on. */
const COMMON = inServer('database', 'queue', 'rpc', 'jobs', 'idempotency', 'limits', 'admin');
const LOG = [...BASE, ...PURE, ...COMMON, ...inServer('exports/destinations', 'log')];
const WITNESSING = [...LOG, ...inServer('witnessing', 'witnessing/clients')];
const ATTESTATIONS = [...WITNESSING, 'server/attestations'];
const FEATURES = [...ATTESTATIONS, ...inServer('webhooks', 'exports', 'public')];
const SERVER = [...FEATURES, ...inServer('pipeline', 'http', 'web', 'ops', 'cosigner', 'signer')];
const ALL = [...SERVER, ...inServer('timestamp-authority', 'embedded', 'process')];

const libraries = (...rooms) => Object.fromEntries(inServer(...rooms).map((room) => [room, [...BASE, ...PURE]]));
const chained = (...rooms) =>
  Object.fromEntries(
    inServer(...rooms).map((room) => [room, [...BASE, ...PURE, ...COMMON.slice(0, COMMON.indexOf(room))]]),
  );

/** A room is a folder of src, or one of src/server, or one of these that is named here. */
const MAY_IMPORT = {
  protocol: [],
  'server/telemetry': ['protocol'],
  'server/core': ['protocol', 'server/telemetry'],
  'server/keys': ['protocol', 'proof', 'server/core'],
  config: ['protocol', 'proof', ...inServer('core', 'keys')],
  proof: ['protocol'],
  ...Object.fromEntries(inServer('schema', 'json', 'net').map((room) => [room, [...BASE, 'proof']])),
  client: ['protocol', 'proof'],
  web: ['protocol', 'proof', 'client'],
  ...libraries('database', 'queue', 'rpc', 'http', 'web', 'witnessing/clients', 'exports/destinations'),
  ...libraries('timestamp-authority', 'embedded'),
  ...chained('jobs', 'idempotency', 'limits', 'admin'),
  'server/log': LOG,
  'server/witnessing': WITNESSING,
  'server/attestations': ATTESTATIONS,
  'server/webhooks': [...BASE, ...PURE, ...COMMON],
  'server/exports': [...ATTESTATIONS, 'server/webhooks'],
  'server/public': ATTESTATIONS,
  'server/pipeline': FEATURES,
  'server/ops': [...FEATURES, 'server/pipeline'],
  'server/cosigner': [...LOG, ...inServer('http', 'ops')],
  'server/signer': LOG,
  'server/process': ALL,
  cli: [...ALL, 'client'],
  generate: [...ALL, 'client', 'cli', 'web'],
};

const ROOMS = Object.keys(MAY_IMPORT);
const INNER = ROOMS.filter((room) => room.split('/').length > 2);

/** Matches the files of rooms, without those of inner rooms that are not among them. */
function filesOf(rooms) {
  const closed = INNER.filter((inner) => !rooms.includes(inner));
  return `^src/${closed.length > 0 ? `(?!(?:${closed.join('|')})/)` : ''}(?:${rooms.join('|')})/`;
}

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...ROOMS.map((room) => ({
      name: `${room} imports upward or sideways`,
      severity: 'error',
      from: { path: filesOf([room]) },
      to: { path: '^src/', pathNot: filesOf([room, ...MAY_IMPORT[room]]) },
    })),
    {
      name: 'a room without a rank',
      severity: 'error',
      from: { path: '^src/', pathNot: [filesOf(ROOMS), `^src/(?:${INNER.join('|')})/`, '^src/main\\.ts$'] },
      to: {},
    },
    { name: 'an import cycle', severity: 'error', from: {}, to: { circular: true } },
  ],
  options: {
    includeOnly: '^src/',
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
  },
};
