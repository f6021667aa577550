/** Metadata as in-toto's bindings and large producers of provenance write it. */
import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import t from 'tap';
import { validateMetadata } from '../../../src/server/schema/registry.js';
import { changed, problemsOf, provenance, registry, testResult } from './samples.js';

const SHA256 = '5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef';
const IMAGE = `registry.example/builders/docker@sha256:${SHA256}`;
const DEPENDENCIES = '/buildDefinition/resolvedDependencies';
const BYPRODUCTS = '/runDetails/byproducts';
const BUILDER = '/runDetails/builder/id';

/** What is accepted though the schema does not allow it: a line for each kind, and one for each place. */
function departuresOf(metadata: JsonObject): string[] {
  const verdict = validateMetadata(registry, metadata);
  if (!('departures' in verdict)) return ['unknown schema'];
  return verdict.departures.flatMap(({ what, errors }) => [
    what,
    ...errors.map(({ path, message }) => `${path} ${message}`),
  ]);
}

t.test('null and empty count as not given in a test result', async (t) => {
  const optional: Record<string, JsonValue> = {
    '/url': '',
    '/passedTests': [],
    '/warnedTests': [],
    '/failedTests': [],
    '/configuration/0/name': '',
    '/configuration/0/uri': '',
    '/configuration/0/digest': {},
    '/configuration/0/content': '',
    '/configuration/0/downloadLocation': '',
    '/configuration/0/mediaType': '',
    '/configuration/0/annotations': {},
  };
  for (const [path, empty] of Object.entries(optional)) {
    for (const value of [null, empty]) t.strictSame(problemsOf(changed(testResult, path, value)), [], path);
  }
  const resources: JsonObject[] = [{ uri: null }, { uri: '', digest: null }, { digest: {}, content: '' }];
  for (const resource of resources) {
    t.strictSame(problemsOf(changed(testResult, '/configuration/0', resource)), [
      '/configuration/0 must have uri or digest or content',
    ]);
  }
});

t.test('an empty value that is required is said to be empty', async (t) => {
  const cases: [metadata: JsonObject, path: string, value: JsonValue][] = [
    [provenance, '/buildDefinition/buildType', ''],
    [provenance, `${DEPENDENCIES}/0/digest/gitCommit`, ''],
    [testResult, '/configuration/0/digest/sha256', ''],
    [{ schema: 'purl', purl: '' }, '/purl', ''],
  ];
  for (const [metadata, path, value] of cases) {
    t.strictSame(problemsOf(changed(metadata, path, value)), [`${path} is empty`], path);
  }
});

t.test("Google Cloud Build's image references without a scheme are accepted with a warning", async (t) => {
  const what = 'a URI is an image reference without a scheme, as Google Cloud Build writes it';
  const references = [
    IMAGE,
    'registry.example/a/b-c/d_e.f:v1.2',
    `registry.example/a:v1@sha256:${SHA256}`,
    `localhost/a@sha512:${SHA256}${SHA256}`,
  ];
  const places = [`${DEPENDENCIES}/1/uri`, `${BYPRODUCTS}/0/uri`];
  for (const path of places) {
    for (const uri of references) {
      const metadata = changed(provenance, path, uri);
      t.strictSame(problemsOf(metadata), [], uri);
      t.strictSame(departuresOf(metadata), [what, `${path} must be an absolute URI`], uri);
    }
  }
  const builders = changed(provenance, '/runDetails/builder/builderDependencies', [{ uri: IMAGE }]);
  t.strictSame(departuresOf(builders), [
    what,
    '/runDetails/builder/builderDependencies/0/uri must be an absolute URI',
  ]);
  const others = [
    'docker',
    'library/docker:latest',
    'registry.example',
    'registry.example/a page',
    'registry.example/a',
    `registry.example/a@sha256:${'z'.repeat(64)}`,
    `Registry.example/A@sha256:${SHA256}`,
    `${IMAGE}\n`,
    `registry.example/${'a/'.repeat(30_000)}`,
    `registry.example/${'a-'.repeat(30_000)}`,
    `${'a.'.repeat(30_000)}`,
  ];
  for (const uri of others) {
    const metadata = changed(provenance, `${DEPENDENCIES}/1/uri`, uri);
    t.strictSame(problemsOf(metadata), [`${DEPENDENCIES}/1/uri must be an absolute URI`], uri.slice(0, 40));
  }
  for (const path of ['/buildDefinition/buildType', BUILDER, `${DEPENDENCIES}/2/downloadLocation`]) {
    t.strictSame(problemsOf(changed(provenance, path, IMAGE)), [`${path} must be an absolute URI`]);
  }
  t.strictSame(problemsOf(changed(testResult, '/configuration/0/uri', IMAGE)), [
    '/configuration/0/uri must be an absolute URI',
  ]);
});

t.test("Google Cloud Build's empty byproducts are accepted with a warning", async (t) => {
  const what = 'a byproduct is empty, as Google Cloud Build writes it';
  const nothing: JsonObject[] = [{}, { uri: '', digest: {}, content: null, annotations: {} }];
  for (const empty of nothing) {
    const metadata = changed(provenance, BYPRODUCTS, [{ uri: 'a:b' }, empty]);
    t.strictSame(departuresOf(metadata), [what, `${BYPRODUCTS}/1 must have uri or digest or content`]);
    t.strictSame(problemsOf(metadata), []);
  }
  const named = changed(provenance, BYPRODUCTS, [{ name: 'log' }]);
  t.strictSame(problemsOf(named), [`${BYPRODUCTS}/0 must have uri or digest or content`]);
  const dependency = changed(provenance, DEPENDENCIES, [{}]);
  t.strictSame(problemsOf(dependency), [`${DEPENDENCIES}/0 must have uri or digest or content`]);
  t.strictSame(problemsOf(changed(provenance, BYPRODUCTS, [null])), [`${BYPRODUCTS}/0 must be an object`]);
});

t.test(
  "BuildKit's empty id of the builder is accepted with a warning; a missing one is a problem",
  async (t) => {
    const what = 'runDetails.builder.id is empty, as BuildKit leaves it: it does not say who built';
    t.strictSame(problemsOf(changed(provenance, BUILDER, '')), []);
    t.strictSame(departuresOf(changed(provenance, BUILDER, '')), [what, `${BUILDER} is empty`]);
    t.strictSame(problemsOf(changed(provenance, BUILDER, null)), [`${BUILDER} must be a string`]);
    t.strictSame(problemsOf(changed(provenance, BUILDER)), [`${BUILDER} is required`]);
    t.strictSame(problemsOf(changed(provenance, BUILDER, 'BuildKit')), [
      `${BUILDER} must be an absolute URI`,
    ]);
  },
);

t.test('beside what is accepted every other violation stays a problem', async (t) => {
  const metadata = changed(
    changed(changed(provenance, BUILDER, ''), BYPRODUCTS, [{}]),
    '/buildDefinition/buildType',
    'workflow',
  );
  t.strictSame(problemsOf(metadata), ['/buildDefinition/buildType must be an absolute URI']);
  t.equal(departuresOf(metadata).length, 4);
  t.strictSame(departuresOf(provenance), []);
  t.strictSame(departuresOf(testResult), []);
});

t.test('of very many places a hundred are listed, with their number', async (t) => {
  const byproducts = Array.from({ length: 20_000 }, () => ({}));
  const verdict = validateMetadata(registry, changed(provenance, BYPRODUCTS, byproducts));
  t.match(verdict, { ok: true, departures: [{ total: 20_000 }] });
  t.equal(departuresOf(changed(provenance, BYPRODUCTS, byproducts)).length, 101);
});
