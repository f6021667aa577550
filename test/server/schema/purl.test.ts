import t from 'tap';
import { findPurlProblem } from '../../../src/server/schema/purl.js';

t.test('package URLs of the specification and of common tools are accepted', async (t) => {
  const purls = [
    'pkg:npm/left-pad',
    'pkg:npm/%40angular/animation@12.3.1',
    'pkg:npm/@angular/animation@12.3.1',
    'pkg:npm/@angular/animation',
    'pkg:NPM/foobar@12.3.1',
    'PKG:npm/foobar',
    'pkg://npm//foobar',
    'pkg:/npm/foobar/',
    'pkg:generic/openssl@1.1.10g?checksum=sha1:ad9503c3e994a4f%2Csha256:41bf9088b3a1e6c1ef1d',
    'pkg:generic/openssl@1.1.10g?download_url=https://openssl.org/source/openssl-1.1.0g.tar.gz',
    'pkg:generic/a?vcs_url=git%2Bhttps://git.example/a.git%40cc55e2449',
    'pkg:generic/a?note=100%25&other=a+b&Third=',
    'pkg:generic/name%20with%20%C3%BC@1%2F2',
    'pkg:golang/google.golang.org/genproto@abcdedf#/googleapis/../api/annotations/',
    'pkg:golang/github.com/a/b@v1.0.0-20240101000000-abcdef123456',
    'pkg:golang/github.com/a/b@v1',
    'pkg:golang/stdlib@1.22.1',
    'pkg:maven/org.apache.xmlgraphics/batik-anim@1.9.1?classifier=sources&repository_url=repo.spring.io%2Frelease',
    'pkg:deb/debian/attr@1:2.4.47-2%2Bb1?arch=amd64',
    'pkg:rpm/fedora/centerim@4.22.10-1.el6?arch=i686&epoch=1&distro=fedora-25',
    'pkg:docker/customer/dockerimage@sha256:244fd47e07d1004f0aed9c?repository_url=gcr.io',
    'pkg:docker/cassandra@latest',
    'pkg:oci/debian@sha256%3A244fd47e07d10?repository_url=ghcr.io%2Fdebian&arch=amd64',
    'pkg:github/package-url/purl-spec@244fd47e07d1004#everybody/loves/dogs',
    'pkg:gem/jruby-launcher@1.1.2?platform=java',
    'pkg:pypi/django_package@1.11.1.dev1',
    'pkg:cargo/clap@2.33.0',
    'pkg:nuget/EnterpriseLibrary.Common@6.0.1304',
    'pkg:swift/github.com/Alamofire/Alamofire@5.4.3',
    'pkg:cran/A3@0.9.1',
    'pkg:conan/bincrafters/cctz@2.3?channel=stable',
    'pkg:huggingface/distilbert/distilbert-base-uncased@043235d6088ecd3dd5fb5ca3592b6913fd516027',
    'pkg:my-own.type/a',
    'pkg:constructor/__proto__@toString?hasownproperty=1',
  ];
  for (const purl of purls) t.equal(findPurlProblem(purl), undefined, purl);
});

const BAD_CHARACTERS = 'it has spaces or characters that must be percent-encoded';
const BAD_TYPE = 'its type must be letters, digits, . and -, from a letter on';
const BAD_QUALIFIER = 'a qualifier must be named by letters, digits, ., - and _, from a letter on';
const BAD_ESCAPE = 'it has a % that encodes no UTF-8';

t.test('anything but a package URL is rejected with the reason', async (t) => {
  const cases: [text: string, problem: string][] = [
    ['', BAD_CHARACTERS],
    ['left-pad', 'it does not begin with pkg:'],
    ['https://example.com/a', 'it does not begin with pkg:'],
    ['pkg%3Anpm/a', 'it does not begin with pkg:'],
    ['pkg:', BAD_TYPE],
    ['pkg:npm', 'it has no name'],
    ['pkg:npm/', 'it has no name'],
    ['pkg:npm/%20', 'it has no name'],
    ['pkg:maven/@1.3.4', 'it has no name'],
    ['pkg:npm/@scope/@1.0', 'it has no name'],
    ['pkg:EnterpriseLibrary.Common@6.0.1304', BAD_TYPE],
    ['pkg:n&g?inx/nginx@0.8.9', BAD_TYPE],
    ['pkg:3nginx/nginx@0.8.9', BAD_TYPE],
    ['pkg:nginx:a/nginx@0.8.9', BAD_TYPE],
    ['pkg://user:secret@npm/a', BAD_TYPE],
    ['pkg:npm:8080/a', BAD_TYPE],
    ['pkg:__proto__/a', BAD_TYPE],
    ['pkg:npm/a?in%20production=true', BAD_QUALIFIER],
    ['pkg:npm/a?1x=1', BAD_QUALIFIER],
    ['pkg:npm/a?__proto__=1', BAD_QUALIFIER],
    ['pkg:npm/a?x=1&', 'a qualifier has no ='],
    ['pkg:npm/a?x', 'a qualifier has no ='],
    ['pkg:npm/a%', BAD_ESCAPE],
    ['pkg:npm/a@%zz', BAD_ESCAPE],
    ['pkg:npm/%ff', BAD_ESCAPE],
    ['pkg:npm/a#%ed%a0%80', BAD_ESCAPE],
    [`pkg:npm/${'a'.repeat(5000)}`, 'it is longer than 4096 characters'],
  ];
  for (const [text, problem] of cases) t.equal(findPurlProblem(text), problem, text.slice(0, 60));
});

t.test('package URLs that packageurl-js would normalise or accept in error are rejected', async (t) => {
  const cases: [text: string, problem: string][] = [
    [' pkg:npm/a', BAD_CHARACTERS],
    ['pkg:npm/a\n', BAD_CHARACTERS],
    ['pkg:np\tm/a', BAD_CHARACTERS],
    ['pkg:npm/a b', BAD_CHARACTERS],
    ['pkg:npm/ü', BAD_CHARACTERS],
    ['pkg:npm/a\0', BAD_CHARACTERS],
    ['pkg:n%70m/a', BAD_TYPE],
    ['pkg:npm/a?x=1&x=2', 'two qualifiers have the same name'],
    ['pkg:npm/a?x=1&X=2', 'two qualifiers have the same name'],
    ['pkg:npm/a?=1', BAD_QUALIFIER],
    ['pkg:npm/a?x=%ff', BAD_ESCAPE],
    ['pkg:npm/a?x=%zz', BAD_ESCAPE],
    ['pkg:a+b/c', BAD_TYPE],
    ['pkg:maven/a%2Fb/c', 'a segment of its namespace holds an encoded /'],
    ['pkg:npm/a#b%2fc', 'a segment of its subpath holds an encoded /'],
  ];
  for (const [text, problem] of cases) t.equal(findPurlProblem(text), problem, JSON.stringify(text));
});

t.test('texts made to take long are answered, each with a short reason', async (t) => {
  const length = 4000;
  const texts = [
    '/'.repeat(length),
    'a/'.repeat(length / 2),
    '@'.repeat(length),
    '%20'.repeat(length / 3),
    `a?${Array.from({ length: 400 }, (_, index) => `q${index}=1`).join('&')}`,
    `a?${'&'.repeat(length)}`,
    `a#${'../'.repeat(length / 3)}`,
    `a@v1.0.0-${'0a.'.repeat(length / 4)}!`,
    '_'.repeat(1 << 20),
    `${'%'.repeat(1 << 20)}`,
  ];
  for (const type of ['npm', 'golang', 'pypi', 'pub']) {
    for (const text of texts) {
      t.ok((findPurlProblem(`pkg:${type}/${text}`) ?? '').length < 100, `${type} ${text.slice(0, 20)}`);
    }
  }
});
