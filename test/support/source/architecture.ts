/** Reads sources and says where they break the rules of the layout. */
import { posix } from 'node:path';
import ts from 'typescript';

/** Sources by their path from the repository's root, as in `src/server/http/server.ts`. */
export type Sources = Readonly<Record<string, string>>;

/** What nobody imports because it is run, or taken in the place of another file. */
const ENTRIES = /^src\/(?:main\.ts|web\/[^/]+\/main\.tsx|generate\/.*|proof\/bytes\/primitives-web\.ts)$/;

const BASE = ['protocol', 'server/core', 'server/keys', 'config'];
const PURE = ['proof', 'server/schema', 'server/json', 'server/net'];
/** What features share. */
const COMMON = ['database', 'queue', 'jobs', 'rpc', 'idempotency', 'limits', 'admin'].map(inServer);
const LOG = [...BASE, ...PURE, ...COMMON, 'server/log'];
const WITNESSING = [...LOG, 'server/witnessing', 'server/witnessing/clients'];
const ATTESTATIONS = [...WITNESSING, 'server/attestations'];
const FEATURES = [
  ...ATTESTATIONS,
  ...['webhooks', 'exports', 'exports/destinations', 'public'].map(inServer),
];
const SERVER = [...FEATURES, ...['pipeline', 'http', 'web', 'ops', 'cosigner'].map(inServer)];
const ALL = [...SERVER, ...['timestamp-authority', 'embedded', 'process'].map(inServer)];

/**
 * The rooms of src, each with those it may import beside itself. A room is a folder of src, or one of src/server, or one
 * of these that is named here.
 */
const MAY_IMPORT: ReadonlyMap<string, readonly string[]> = new Map([
  ['protocol', []],
  ['server/core', ['protocol']],
  ['server/keys', ['protocol', 'proof', 'server/core']],
  ['config', ['protocol', 'proof', 'server/core', 'server/keys']],
  ['proof', ['protocol']],
  ...['schema', 'json', 'net'].map((room) => [inServer(room), [...BASE, 'proof']] as const),
  ['client', ['protocol', 'proof']],
  ['web', ['protocol', 'proof', 'client']],
  ...['database', 'queue', 'rpc', 'http', 'web', 'witnessing/clients', 'exports/destinations'].map(
    (room) => [inServer(room), [...BASE, ...PURE]] as const,
  ),
  ...['timestamp-authority', 'embedded'].map((room) => [inServer(room), [...BASE, ...PURE]] as const),
  ...['jobs', 'idempotency', 'limits', 'admin'].map(
    (room, at) =>
      [
        inServer(room),
        [
          ...BASE,
          ...PURE,
          ...['database', 'queue', 'rpc', 'jobs', 'idempotency', 'limits'].slice(0, 3 + at).map(inServer),
        ],
      ] as const,
  ),
  ['server/log', LOG],
  ['server/witnessing', WITNESSING],
  ['server/attestations', ATTESTATIONS],
  ['server/webhooks', [...BASE, ...PURE, ...COMMON]],
  ['server/exports', [...ATTESTATIONS, 'server/webhooks', 'server/exports/destinations']],
  ['server/public', ATTESTATIONS],
  ['server/pipeline', FEATURES],
  ['server/ops', [...FEATURES, 'server/pipeline']],
  ['server/cosigner', [...LOG, 'server/http', 'server/ops']],
  ['server/process', ALL],
  ['cli', [...ALL, 'client']],
  ['generate', [...ALL, 'client', 'cli']],
]);

function inServer(room: string): string {
  return `server/${room}`;
}

/** The configuration, and the client library, which is part of other programs. */
const READ_ENVIRONMENT = new Set(['src/config/process-env.ts', 'src/client/env-fetch.ts']);

/** Every rule broken, a line each: imports, cycles, `process.env`, docstrings. */
export function findViolations(sources: Sources): string[] {
  const parsed = parseAll(sources);
  const imports = new Map(parsed.map(({ path, targets }) => [path, targets]));
  return [
    ...parsed.flatMap(({ path, findings }) => findings.map((finding) => `${path} ${finding}`)),
    ...parsed.flatMap(({ path, targets }) => findForbidden(path, targets)),
    ...findCycles(imports).map((cycle) => `import cycle: ${cycle.join(' > ')}`),
  ];
}

/** The files that no other file brings in, and that are not run by themselves. */
export function findOrphans(sources: Sources): string[] {
  const targets = new Set(parseAll(sources).flatMap(({ targets }) => targets));
  return Object.keys(sources).filter((path) => !targets.has(path) && !ENTRIES.test(path));
}

const files = new Map<string, ts.SourceFile>();

/** The syntax tree of a source, which is parsed once for all rules. */
export function parseSource(path: string, text: string): ts.SourceFile {
  const key = `${path}\n${text}`;
  const file = files.get(key) ?? ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  files.set(key, file);
  return file;
}

type Parsed = { path: string; targets: string[]; findings: string[] };

function parseAll(sources: Sources): Parsed[] {
  return Object.entries(sources).map(([path, source]) => {
    const parsed = parse(path, source);
    return { ...parsed, targets: parsed.targets.map((target) => sourceOf(target, sources)) };
  });
}

/** The source that an import of a module's path means: of a component, with JSX. */
export function sourceOf(target: string, sources: Sources): string {
  const withJsx = `${target}x`;
  return !(target in sources) && withJsx in sources ? withJsx : target;
}

function parse(path: string, source: string): Parsed {
  const file = parseSource(path, source);
  const targets = new Set<string>();
  const findings = new Set<string>();
  const visit = (node: ts.Node): void => {
    const specifier = findSpecifier(node);
    if (specifier?.startsWith('.')) targets.add(resolve(path, specifier));
    if (isUndocumented(file, node)) findings.add('exports a function without a docstring');
    if (!READ_ENVIRONMENT.has(path) && readsEnvironment(node)) findings.add('reads process.env');
    ts.forEachChild(node, visit);
  };
  visit(file);
  return { path, targets: [...targets], findings: [...findings] };
}

/** The module that a node brings in: by import, export, `import()`, a type, or a URL relative to the module. */
function findSpecifier(node: ts.Node): string | undefined {
  const literal = findSpecifierNode(node);
  return literal !== undefined && ts.isStringLiteralLike(literal) ? literal.text : undefined;
}

function findSpecifierNode(node: ts.Node): ts.Node | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return node.moduleSpecifier;
  if (ts.isImportTypeNode(node))
    return ts.isLiteralTypeNode(node.argument) ? node.argument.literal : undefined;
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword)
    return node.arguments[0];
  if (!ts.isNewExpression(node) || !ts.isIdentifier(node.expression) || node.expression.text !== 'URL')
    return;
  const [target] = node.arguments ?? [];
  return target && ts.isStringLiteralLike(target) && target.text.endsWith('.js') ? target : undefined;
}

function resolve(path: string, specifier: string): string {
  return posix.join(posix.dirname(path), specifier).replace(/\.js$/, '.ts');
}

/** Of overloads the first one's docstring is that of all. */
function isUndocumented(file: ts.SourceFile, node: ts.Node): boolean {
  if (!ts.isFunctionDeclaration(node)) return false;
  const isExported = node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
  const isSame = (other: ts.Node) => ts.isFunctionDeclaration(other) && other.name?.text === node.name?.text;
  return isExported && ts.getJSDocCommentsAndTags(file.statements.find(isSame) ?? node).length === 0;
}

/** `process.env` in each of its spellings: as a member, by a string, taken out of `process`, imported. */
function readsEnvironment(node: ts.Node): boolean {
  const isProcess = (value: ts.Node | undefined) =>
    value !== undefined && ts.isIdentifier(value) && value.text === 'process';
  const isEnv = (name: ts.Node | undefined) =>
    name !== undefined && (ts.isIdentifier(name) || ts.isStringLiteralLike(name)) && name.text === 'env';
  if (ts.isPropertyAccessExpression(node)) return isProcess(node.expression) && isEnv(node.name);
  if (ts.isElementAccessExpression(node)) return isProcess(node.expression) && isEnv(node.argumentExpression);
  if (ts.isVariableDeclaration(node) && ts.isObjectBindingPattern(node.name) && isProcess(node.initializer)) {
    return node.name.elements.some(({ propertyName, name }) => isEnv(propertyName ?? name));
  }
  if (!ts.isImportDeclaration(node) || !/^(?:node:)?process$/.test(findSpecifier(node) ?? '')) return false;
  const named = node.importClause?.namedBindings;
  return named !== undefined && ts.isNamedImports(named)
    ? named.elements.some(({ propertyName, name }) => isEnv(propertyName ?? name))
    : false;
}

function findForbidden(path: string, targets: readonly string[]): string[] {
  const from = roomOf(path);
  const allowed = MAY_IMPORT.get(from);
  if (allowed === undefined) return [`${path} is in a room without a rank`];
  return targets
    .filter((target) => target.startsWith('src/') && roomOf(target) !== from)
    .filter((target) => !allowed.includes(roomOf(target)))
    .map((target) => `${path} imports ${target}: ${from} may not import ${roomOf(target)}`);
}

/** The room that a file belongs to. `main.ts`, the only file outside all of them, counts as one of the command line. */
function roomOf(path: string): string {
  if (path === 'src/main.ts') return 'cli';
  const folders = path.split('/').slice(1, -1);
  const inner = folders.slice(0, 3).join('/');
  return MAY_IMPORT.has(inner) ? inner : folders.slice(0, folders[0] === 'server' ? 2 : 1).join('/');
}

/** Circles of imports, each as the way around it, found depth first; one for each edge that closes a circle. */
function findCycles(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  const way: string[] = [];
  const visit = (path: string): void => {
    const at = way.indexOf(path);
    if (at !== -1) cycles.push([...way.slice(at), path]);
    if (at !== -1 || done.has(path)) return;
    way.push(path);
    for (const target of imports.get(path) ?? []) visit(target);
    way.pop();
    done.add(path);
  };
  for (const path of imports.keys()) visit(path);
  return cycles;
}
