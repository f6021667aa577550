import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { BuildOptions, Plugin } from 'esbuild';

/** Bundled CommonJS packages call `require` for the modules of Node. */
const REQUIRE = `import { createRequire as createBundleRequire } from 'node:module';
const require = createBundleRequire(import.meta.url);`;

/**
 * Options of a bundle whose modules keep the URL of their file in `dist/`, where what they read and start is beside them.
 * `urlOf`: a JavaScript expression for the URL of a file, in which `bundleUrl` is that of the bundle.
 */
export function ownUrls(
  urlOf: (path: string) => string,
): Pick<BuildOptions, 'banner' | 'define' | 'plugins'> {
  return {
    banner: { js: `${REQUIRE}\nconst bundleUrl = import.meta.url;` },
    define: { 'import.meta.url': 'moduleUrl' },
    plugins: [moduleUrls(urlOf)],
  };
}

function moduleUrls(urlOf: (path: string) => string): Plugin {
  return {
    name: 'module-urls',
    setup({ onLoad }) {
      onLoad({ filter: /\/dist\/(?:src|test|gen)\/.*\.js$/ }, ({ path }) => {
        const code = readFileSync(path, 'utf8');
        if (path.includes('/node_modules/') || !code.includes('import.meta.url')) return null;
        return { contents: `const moduleUrl = ${urlOf(path)};\n${code}`, resolveDir: dirname(path) };
      });
    },
  };
}
