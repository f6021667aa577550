import t from 'tap';
import { UsageError } from '../../../src/cli/cli.js';
import { parseReference } from '../../../src/cli/oci/reference.js';

const HEX = 'ab'.repeat(32);

t.test('references are read', async (t) => {
  const good: [string, object][] = [
    [
      `ghcr.io/acme/app@sha256:${HEX}`,
      { registry: 'ghcr.io', repository: 'acme/app', digest: `sha256:${HEX}` },
    ],
    ['oci://localhost/app:1', { registry: 'localhost', repository: 'app', tag: '1' }],
    ['localhost:5000/a/b/c:v1.2_3-x', { registry: 'localhost:5000', repository: 'a/b/c', tag: 'v1.2_3-x' }],
    ['[::1]:5000/a__b/c--d.e:1', { registry: '[::1]:5000', repository: 'a__b/c--d.e', tag: '1' }],
    [
      `r.example/a:1@sha256:${HEX}`,
      { registry: 'r.example', repository: 'a', tag: '1', digest: `sha256:${HEX}` },
    ],
    ['registry:80/a:1', { registry: 'registry:80', repository: 'a', tag: '1' }],
  ];
  for (const [text, reference] of good) t.match(parseReference(text), reference, text);
});

t.test('malformed references are errors, each with its problem', async (t) => {
  const bad: [string, RegExp][] = [
    ['', /names no registry/],
    ['app', /names no registry/],
    ['app:1', /names no registry/],
    ['acme/app:1', /names no registry/],
    ['oci://', /names no registry/],
    ['https://ghcr.io/acme/app:1', /names no registry/],
    ['oci://oci://ghcr.io/app:1', /names no registry/],
    ['user:pass@ghcr.io/app:1', /names no registry/],
    ['user@ghcr.io/app:1', /names no registry/],
    ['ghcr.io:99999/app:1', /registry is no host/],
    ['ghcr.io:/app:1', /names no registry/],
    ['-a.io/app:1', /names no registry/],
    ['gh cr.io/app:1', /names no registry/],
    ['ghcr.io?x/app:1', /names no registry/],
    ['ghcr.io/', /repository is malformed/],
    ['ghcr.io/App:1', /repository is malformed/],
    ['ghcr.io/a//b:1', /repository is malformed/],
    ['ghcr.io/../a:1', /repository is malformed/],
    ['ghcr.io/a/../../b:1', /repository is malformed/],
    ['ghcr.io/a%2f..:1', /repository is malformed/],
    ['ghcr.io/a\n:1', /repository is malformed/],
    ['ghcr.io/a?b:1', /repository is malformed/],
    [`ghcr.io/${'a'.repeat(256)}:1`, /repository is malformed/],
    [`ghcr.io/${'a'.repeat(100_000)}!:1`, /repository is malformed/],
    ['ghcr.io/app:', /tag is malformed/],
    ['ghcr.io/app:a:b', /tag is malformed/],
    ['ghcr.io/app:-1', /tag is malformed/],
    [`ghcr.io/app:${'a'.repeat(129)}`, /tag is malformed/],
    ['ghcr.io/app:a/b', /tag is malformed/],
    ['ghcr.io/app@', /digest is not/],
    ['ghcr.io/app@sha256:abc', /digest is not/],
    [`ghcr.io/app@sha512:${HEX}${HEX}`, /digest is not/],
    [`ghcr.io/app@sha256:${HEX.toUpperCase()}`, /digest is not/],
    [`ghcr.io/app@sha256:${HEX}@sha256:${HEX}`, /digest is not/],
    ['ghcr.io/app', /neither a digest nor a tag/],
  ];
  for (const [text, message] of bad)
    t.throws(() => parseReference(text), { name: UsageError.prototype.name, message }, text.slice(0, 80));
});
