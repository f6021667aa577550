import t from 'tap';
import { loadSdk } from '../../../src/server/export/load-sdk.js';
import { resolvedBy } from '../../support/loaded-modules.js';

t.test('a package that is not installed is named to the operator', async (t) => {
  const name: string = '@example/not-installed';
  const loading = loadSdk(name, () => import(name));
  await t.rejects(loading, {
    name: 'DestinationError',
    message: /must run: npm install @example\/not-installed$/,
  });
});

t.test('another error of loading stays as it is', async (t) => {
  const error = new SyntaxError('broken');
  await t.rejects(
    loadSdk('x', () => Promise.reject(error)),
    error,
  );
});

t.test('no SDK is loaded before a destination of its kind is opened', async (t) => {
  const names = ['gcs/open-gcs', 'azure/open-azure-blob', 'open-destination'];
  const urls = names.map((name) => new URL(`../../../src/server/export/${name}.js`, import.meta.url).href);
  const resolved = await resolvedBy(urls.map((url) => `await import('${url}');`).join('\n'));
  t.match(resolved, /open-azure-blob\.js/);
  t.notMatch(resolved, /@google-cloud|@azure|@aws-sdk/);
});
