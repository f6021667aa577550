/**
 * Every registered type by its definition in package-url/purl-spec (August 2026), in the groups of that repository's
 * test suite: what it names, what it forbids, what it requires. The suite and the definitions contest each other in two
 * places, which are named below. A package URL that the suite calls valid is valid here.
 */
import t from 'tap';
import { findPurlProblem } from '../../../src/server/schema/purl.js';

const EXTENSION = 'abcdefghijklmnopabcdefghijklmnop';
const UUID = 'fbe9abb3-538b-5e4e-ba9e-bc94f4f92ebc';
const SHA256 = 'sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef';

/** Types whose packages have no namespace: a purl of each without its namespace. */
const WITHOUT_NAMESPACE: Record<string, string> = {
  bazel: 'rules_example@1.2.0?repository_url=https://registry.example/modules',
  bitnami: 'example@6.2.0?arch=arm64&distro=debian-12',
  cargo: 'example_crate@0.7.2',
  'chrome-extension': `${EXTENSION}@1.2.3.4`,
  cocoapods: 'ExampleKit@1.10.1#Core',
  conda: 'example@0.4.1?build=py36h06a4308_0&channel=main&subdir=linux-64&type=tar.bz2',
  cran: 'Example@0.9.1',
  gem: 'example@1.1.2?platform=java',
  hackage: 'Example@2.6.1',
  julia: `Example@1.9.0?uuid=${UUID}`,
  mlflow:
    'credit-model@3?model_uuid=36233173b22f4c89&run_id=410a3121&repository_url=https://models.example/api',
  nuget: 'Example.Common@6.0.1304',
  oci: `example@${SHA256}?repository_url=registry.example/example&arch=amd64&tag=latest`,
  opam: 'base-example@v0.14.1',
  otp: 'example@2.1.1?platform=linux&arch=x86_64',
  pub: 'example_package@5.0.0',
  pypi: 'Example_package@1.11.1.dev1?file_name=example-1.11.1.dev1.tar.gz',
  vcpkg: 'example-lib@1.3.1?port_version=1&triplet=x64-windows',
};

/** Types whose packages have a namespace, with what it names. */
const WITH_NAMESPACE: Record<string, [namespace: string, rest: string, names: string]> = {
  alpm: ['arch', 'example@6.0.1-1?arch=x86_64', 'vendor'],
  apk: ['alpine', 'example@7.83.0-r0?arch=x86', 'vendor'],
  bitbucket: ['birk', 'example@244fd47e07d1', 'user or organization'],
  composer: ['acme', 'example@2.0.2', 'vendor'],
  deb: ['debian', 'example@1:2.4-2?arch=source&distro=bookworm', 'vendor'],
  git: ['git.example', 'group/example@8a1b2c', 'host'],
  github: ['acme', 'example@244fd47e07d1#a/b', 'user or organization'],
  huggingface: ['acme', 'Example-1.3B@797174552AE47F44', 'user or organization'],
  maven: ['org.example', 'io@1.3.4?classifier=sources&type=zip', 'group id'],
  qpkg: ['blackberry', 'com.example@4.0.1', 'vendor'],
  rpm: ['fedora', 'example@7.50.3-1.fc25?arch=i386&epoch=1', 'vendor'],
  swift: ['github.com/acme', 'Example@5.4.3', 'host and owner of the source'],
  'vscode-extension': ['acme', 'example@1.46.0?platform=linux-x64', 'publisher'],
};

/** Types whose packages may have a namespace. */
const EITHER: Record<string, string[]> = {
  brew: ['example@3.0', 'homebrew/core/example@3.0'],
  conan: [
    'example@3.0.3',
    'acme.example/example@3.0.3',
    'example@3.0.3?channel=stable',
    'example@3.0.3?user=acme&channel=stable&rrev=93a8&prev=b429',
    'acme.example/example?os=Linux&build_type=Debug',
  ],
  cpan: ['Example-Module@6.76', 'ACME/Example-Module@1.55', 'Example?author=ACME&ext=zip'],
  docker: ['example@latest', `acme/example@${SHA256}?repository_url=registry.example`],
  generic: ['example', 'acme/example@1.0?checksum=sha256:ab&download_url=https://files.example/a.tgz'],
  hex: ['example@0.5.1', 'acme/example@0.5.1'],
  luarocks: ['example@1.0-1', 'acme/example@1.0-1'],
  npm: ['example@1.3.0', '%40acme/example@12.3.1'],
  swid: [`Example@1.0?tag_id=${UUID}`, `Acme/acme.example/Example@1.0?tag_id=${UUID}&tag_version=1`],
  yocto: ['example@1.2', 'core/example@1.2?layer_version=4.0'],
};

t.test('types whose definition prohibits a namespace reject one', async (t) => {
  for (const [type, rest] of Object.entries(WITHOUT_NAMESPACE)) {
    t.equal(findPurlProblem(`pkg:${type}/${rest}`), undefined, type);
    const article = type === 'oci' || type === 'opam' || type === 'otp' ? 'an' : 'a';
    t.equal(findPurlProblem(`pkg:${type}/ns/${rest}`), `${article} ${type} purl has no namespace`, type);
    t.equal(findPurlProblem(`pkg:${type}/a/b/${rest}`), `${article} ${type} purl has no namespace`, type);
  }
});

t.test('types whose definition requires a namespace demand one, and explain it', async (t) => {
  for (const [type, [namespace, rest, names]] of Object.entries(WITH_NAMESPACE)) {
    t.equal(findPurlProblem(`pkg:${type}/${namespace}/${rest}`), undefined, type);
    const alone = rest.replace(/^group\//, '');
    const article = type === 'alpm' || type === 'apk' || type === 'rpm' ? 'an' : 'a';
    const problem = `${article} ${type} purl needs a namespace (${names})`;
    t.equal(findPurlProblem(`pkg:${type}/${alone}`), problem, type);
    t.equal(findPurlProblem(`pkg:${type.toUpperCase()}//${alone}`), problem, type);
  }
});

t.test('types whose definition leaves the namespace open take both forms', async (t) => {
  for (const [type, forms] of Object.entries(EITHER)) {
    for (const form of forms) t.equal(findPurlProblem(`pkg:${type}/${form}`), undefined, form);
  }
});

t.test('a version is optional, and a name is not, for every registered type', async (t) => {
  const purls = [
    ...Object.entries(WITHOUT_NAMESPACE),
    ...Object.entries(WITH_NAMESPACE).map(([type, [namespace, rest]]) => [type, `${namespace}/${rest}`]),
    ...Object.entries(EITHER).map(([type, [form]]) => [type, form]),
  ];
  t.equal(purls.length, 41);
  for (const [type = '', rest = ''] of purls) {
    const unversioned = rest.replace(/(?<=\w)@[^?#]*/, '');
    t.equal(findPurlProblem(`pkg:${type}/${unversioned}`), undefined, unversioned);
    t.equal(findPurlProblem(`pkg:${type}`), 'it has no name', type);
    t.equal(findPurlProblem(`pkg:${type}/@1.0`), 'it has no name', type);
  }
});

t.test('what else a definition asks of name, version and qualifiers is checked', async (t) => {
  const letters = 'the name of a chrome-extension purl must be 32 letters from a to p';
  const numbers = 'the version of a chrome-extension purl must be one to four numbers with . between them';
  const cases: [text: string, problem?: string][] = [
    [`pkg:chrome-extension/${EXTENSION.toUpperCase()}`],
    ['pkg:chrome-extension/example', letters],
    [`pkg:chrome-extension/${EXTENSION.replace('a', '4')}`, letters],
    [`pkg:chrome-extension/${EXTENSION}@1.2.3.4.5`, numbers],
    [`pkg:chrome-extension/${EXTENSION}@1.2.3-beta`, numbers],
    [
      'pkg:cpan/Acme::Example',
      'the name of a cpan purl must be that of a distribution, with - in place of ::',
    ],
    ['pkg:julia/Example', 'a julia purl needs the qualifier uuid'],
    ['pkg:julia/Example?uuid=', 'a julia purl needs the qualifier uuid'],
    ['pkg:swid/Acme/Example@1.0', 'a swid purl needs the qualifier tag_id'],
    ['pkg:pub/Example-Package'],
    ['pkg:pub/a.b', 'the name of a pub purl must be letters, digits and _'],
    ['pkg:golang/example.com/a@v1'],
    ['pkg:oci/example@latest'],
    ['pkg:unregistered/a/b/c?d=e'],
  ];
  for (const [text, problem] of cases) t.equal(findPurlProblem(text), problem, text);
});

t.test(
  'where scanners or the rules for parsing differ from definitions and suite, a purl is accepted',
  async (t) => {
    const contested: [text: string, why: string][] = [
      ['pkg:golang/stdlib@1.22.1', 'the definition requires a namespace; modules of one segment have none'],
      ['pkg:gem/example@1.1.2?Platform=java', 'the suite rejects it; the rules for parsing make keys small'],
      ['pkg:Rpm/fedora/example@7.50?Arch=i386&Distro=fedora-25', 'likewise'],
    ];
    for (const [text, why] of contested) t.equal(findPurlProblem(text), undefined, `${text}: ${why}`);
  },
);
