import { join } from 'node:path';
import { build, type Plugin } from 'vite';

/** A page of `src/web/`: its folder, and the library that its JSX is for. */
type Page = { name: string; jsx: 'react' | 'preact' };

/** The pages, each of which has a TypeScript project of its own. */
export const PAGES: readonly Page[] = [
  { name: 'dashboard', jsx: 'react' },
  { name: 'verify', jsx: 'preact' },
];

/** Bundles the page into `dist/web/<name>/`: `index.html`, and scripts and styles with their hashes as names. Throws if a file does not compile. */
export async function bundlePage(root: string, { name, jsx }: Page): Promise<void> {
  await build({
    configFile: false,
    root: join(root, 'src/web', name),
    base: './',
    logLevel: 'warn',
    oxc: { jsx: { runtime: 'automatic', importSource: jsx } },
    plugins: [browserPrimitives()],
    build: {
      outDir: join(root, 'dist/web', name),
      emptyOutDir: true,
      target: 'es2022',
      // A policy without `data:` for scripts and styles; old browsers are not served.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
    },
  });
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
