import { EVM_RPC_HELP } from '../../flags/evm-flags.js';

/** Help text of `attest verify`. */
export const VERIFY_HELP = `
Verifies locally that the bundle's statement is about the file, that it is in the log, and that witnesses signed the log's
checkpoint. Prints the result of each step and a summary of what is proven.

Any project of a service can attest any file. --project requires a certain one: get its ID from the expected attester.
Without it the summary names the project; check it yourself.

--issuer and --identity require who submitted, of a submission that a workload made with its identity token instead of a
stored key. The signed statement names that identity; the service verified the token when it exchanged it.

Trust roots never come from the bundle: they come from --trust-roots, else from trust_roots.json under --verify-url,
ATTEST_VERIFY_URL, ATTEST_URL, or the address in the data directory. Trust roots fetched this way are only as trustworthy
as the server: prefer a copy obtained through another channel.

Evidence of OpenTimestamps is checked against headers of Bitcoin blocks from a node or site that you trust. Without the
header of its block it is not checked, and the report says which block that is.

--min-witnesses and --require-witness ask for more than the policy of the trust roots: the verdict is "not verified" unless
so many witnesses, or those, are verified. Names are those in the report.

--json prints what is proven under "statement", and under "verified" what a policy decides on: "identity", and of a public
statement "predicate_type", "predicate" and "subjects", of a private one "metadata" that opens the commitment. Both are there
only if the verdict is "verified". --metadata of a public statement is compared with the predicate and needs no salt.

--set takes the set file of the folder that was submitted: with a folder, every file is compared, and those that are changed,
missing or extra are listed; withheld entries are counted. Give the same --include, --exclude and --follow-symlinks as
for \`attest submit\`. With one file, that file must be in the set, at --path if it is given. A bundle with a member proof
(\`attest set proof\`) needs no set file.

--bundles takes a folder of bundles, every *.json below it: with a folder, each file must have a bundle (whatever its name) and
each bundle a file, and those that are changed, missing, extra or failed are listed; with one file, its bundle is found. The
folder of bundles may be the folder itself, or in it.

--junit writes a JUnit report with a test case for each file, a failure for what is not verified and an error for what could not
be checked.

--export verifies what an export has written: an object (.jsonl, .jsonl.gz), a manifest.json, or a directory with a
downloaded export or part of it. Each line must be a verified submission. Each manifest must be signed, its objects must
be there as it lists them, and the manifests must cover the log without a gap.

${EVM_RPC_HELP.trim()}

Exit codes: 0 verified, 1 not verified, or files are changed, missing or extra, 2 could not check

Examples:
  $ attest verify --export ./attestations --trust-roots trust_roots.json
  $ attest verify model.bin --bundle model.bin.bundle --trust-roots trust_roots.json \\
      --project prj_01JZ7Q0W9C8B7A6Z5Y4X3W2V1T
  $ attest verify art/ --set run.set.json --bundle run.bundle.json
  $ attest verify art/ --bundles proofs/ --junit attest.xml
  $ attest verify art/shot.png --bundles proofs/
  $ attest verify art/shot.png --set run.set.json --bundle run.bundle.json
  $ attest verify sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 --bundle b.json --json
  $ attest verify model.bin --bundle b.json --bitcoin-header \
      850000:$(bitcoin-cli getblockheader $(bitcoin-cli getblockhash 850000) false)
  $ attest verify report.json --bundle b.json --metadata @metadata.json --metadata-salt 5f4e...`;
