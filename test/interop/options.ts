import { parseArgs } from 'node:util';

export const HELP = `npm run interop -- [options]

Gives what this service makes to programs that were not written for it: the lines of docs/verifying.md (openssl, jq,
cosign), sigstore-go, sigstore-python, Sigstore's timestamp-authority, tspclient-go, Tessera's client and fsck, a gRPC
client in Go that buf and protoc-gen-go make with the buf.gen.yaml of docs/clients, REST clients that openapi-generator
(Python, Java, Go, TypeScript), openapi-python-client, oapi-codegen and hey-api make of the OpenAPI document, a table of
tampered bundles, Connect's conformance cases for a server of test/interop on the service's path for RPCs (those that
fail are in test/interop/conformance/known-failing.txt, each with its reason), for exports, public log and register the
S3-compatible store versitygw, for images go-containerregistry's registry and Debian's docker-registry with cosign and oras, for the rules of
docs/policies.md OPA, conftest, kyverno-json, Conforma's rules, cosign and in-toto's attestation-verifier, for the TUF
repository cosign, npm sigstore and python-tuf, for C2SP witnesses litewitness and torchwood, for COSE receipts
scitt-cose, for OpenTimestamps ots, and for EVM witnesses cast. Sigstore's timestamp-authority is a witness of the
service. Helm and kubeconform read the chart of deploy/; its image is built and started by buildah and podman, over a base
that debootstrap makes, for root where these and runc are. Starts its own services. Prints a table; ends with 1 if any
program does other than it should. A check that throws has one row, and the others run.

Needs Go 1.26.8 or newer, Python 3.11 with venv, a JDK of 11 or newer with Maven, git, jq, curl, openssl and ssh on the
PATH. Installs, through the Go module proxy, cosign, litewitness, grpcurl, connectconformance, opa, conftest,
kyverno-json, oras, versitygw, helm, kubeconform, oapi-codegen, protoc-gen-go, protoc-gen-go-grpc and the programs of
test/interop/go into .interop/ of this checkout, which git ignores; modules go into Go's own cache, Kubernetes' (for its
schemas) too. Checks Conforma's rules and attestation-verifier out of their repositories. Installs scitt-cose, sigstore, opentimestamps-client, tuf and
openapi-python-client from PyPI, cast and hey-api from npm, and openapi-generator from Maven Central there as well; what
Java clients need goes into Maven's own cache. The first run takes some minutes and 2 GB, the next ones some minutes.

  --install    only install
  --only       names of checks, with commas between, such as exports,stored-log: with what is installed already
  --keep       keep the folder with the bundles, and say where it is
  --sources    URL or folder that has the repositories as owner/name (https://github.com)`;

/** What to do. */
export type Options = { installOnly: boolean; keep: boolean; sources: string; only: readonly string[] };

/** Reads the command line. Throws an Error that says what is wrong; undefined when help is wanted. */
export function readOptions(args: string[]): Options | undefined {
  const { values } = parseArgs({
    args,
    options: {
      help: { type: 'boolean', short: 'h' },
      install: { type: 'boolean' },
      only: { type: 'string', default: '' },
      keep: { type: 'boolean' },
      sources: { type: 'string' },
    },
  });
  if (values.help) return undefined;
  const { install = false, keep = false, sources = 'https://github.com' } = values;
  const only = values.only.split(',').filter((name) => name !== '');
  return { installOnly: install, keep, sources, only };
}
