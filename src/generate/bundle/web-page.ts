import { join, relative } from 'node:path';
import { build, type Plugin } from 'vite';
import { RULES, rulesStub } from '../packages/stage-client.js';
import { type Reads, stripUnreadOptions } from '../packages/strip-options.js';

/**
 * A page of `src/web/`: its folder, the path that its assets are found under, what it reads of descriptors, and whether it is
 * bundled into one script.
 */
type Page = { name: string; base: string; reads: Reads; isOneScript: boolean };

/** The pages, each of which has a TypeScript project of its own. */
export const PAGES: readonly Page[] = [
  { name: 'docs', base: '/docs/', reads: 'calls', isOneScript: false },
  { name: 'dashboard', base: '/dashboard/', reads: 'roles', isOneScript: false },
  { name: 'verify', base: './', reads: 'messages', isOneScript: true },
];

/** Libraries for React run on Preact. */
const ALIASES = {
  'react/jsx-runtime': 'preact/jsx-runtime',
  'react-dom': 'preact/compat',
  react: 'preact/compat',
};

/**
 * Bundles the page into `dist/web/<name>/`: `index.html`, and scripts and styles with their hashes as names. Returns the
 * paths, from `root`, of the modules that it is made of. Throws if a file does not compile.
 */
export async function bundlePage(root: string, { name, base, reads, isOneScript }: Page): Promise<string[]> {
  const built = await build({
    configFile: false,
    root: join(root, 'src/web', name),
    base,
    logLevel: 'warn',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    resolve: { alias: ALIASES },
    plugins: [browserPrimitives(), lightDescriptors(reads)],
    build: {
      outDir: join(root, 'dist/web', name),
      emptyOutDir: true,
      target: 'es2022',
      // A policy without `data:` for scripts and styles; old browsers are not served.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      rolldownOptions: {
        // A page that stays open while the service is upgraded finds no further scripts.
        ...(isOneScript && { output: { codeSplitting: false } }),
        // Libraries mark what runs in browsers for frameworks that render on servers, too.
        onwarn: (warning, report) => warning.code === 'MODULE_LEVEL_DIRECTIVE' || report(warning),
      },
    },
  });
  return [built]
    .flat()
    .flatMap((one) => ('output' in one ? one.output : []))
    .flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []))
    .map((id) => relative(root, id.replace('\0', '')));
}

/** Takes the browser's primitives of `src/proof/` in the place of Node's, and lets no other module of Node in. */
function browserPrimitives(): Plugin {
  return {
    name: 'browser-primitives',
    enforce: 'pre',
    resolveId(source, importer, options) {
      if (source.startsWith('node:')) throw new Error(`${importer} imports ${source}`);
      if (!source.endsWith('/primitives.js')) return null;
      return this.resolve(source.replace('primitives.js', 'primitives-web.js'), importer, options);
    },
  };
}

const RULES_STUB = '\0rules-stub';

/** Leaves out what only servers read of the descriptors, as in the client's package: a quarter of the verify page. */
function lightDescriptors(reads: Reads): Plugin {
  return {
    name: 'light-descriptors',
    enforce: 'pre',
    resolveId: (source) => (source === RULES ? RULES_STUB : null),
    load: (id) => (id === RULES_STUB ? rulesStub() : null),
    transform: (code, id) => (id.includes('/gen/attestation/') ? stripUnreadOptions(code, reads) : null),
  };
}
