import t from 'tap';
import { loadSdk } from '../../../../src/server/exports/destinations/load-sdk.js';
import { resolvedBy, runProgram } from '../../../support/source/loaded-modules.js';

t.test('a package that is not installed is named to the operator', async (t) => {
  const name: string = '@example/not-installed';
  const loading = loadSdk(name, () => import(name));
  await t.rejects(loading, {
    name: 'DestinationError',
    message: /must run: npm install @example\/not-installed$/,
  });
});

t.test('another error of loading is rethrown', async (t) => {
  const error = new SyntaxError('broken');
  await t.rejects(
    loadSdk('x', () => Promise.reject(error)),
    error,
  );
});

t.test('no SDK is loaded before a destination of its kind is opened', async (t) => {
  const names = ['gcs/open-gcs', 'azure/open-azure-blob', 'open-destination'];
  const urls = names.map(
    (name) => new URL(`../../../../src/server/exports/destinations/${name}.js`, import.meta.url).href,
  );
  const resolved = await resolvedBy(urls.map((url) => `await import('${url}');`).join('\n'));
  t.match(resolved, /open-azure-blob\.js/);
  t.notMatch(resolved, /@google-cloud|@azure|@aws-sdk/);
});

t.test('the SDK of AWS warns of no version of Node, and other warnings are shown', async (t) => {
  const at = (path: string) => new URL(`../../../${path}`, import.meta.url).href;
  const { stderr } = await runProgram(`
    import { contextOf, OWNER } from '${at('support/exports/s3/fixture.js')}';
    import { openS3 } from '${at('../src/server/exports/destinations/s3/s3.js')}';
    await openS3(contextOf({ endpoint: 'http://localhost:1', ...OWNER }));
    await openS3(contextOf({ roleArn: 'arn:aws:iam::123456789012:role/a' }));
    process.emitWarning('another one');`);
  t.match(stderr, /^\(node:\d+\) Warning: another one\n\(Use `node --trace-warnings .*\n$/);
});
