import { Code } from '@connectrpc/connect';
import { ErrorCode, ErrorCodeSchema } from '../../gen/attestation/v1/errors_pb.js';
import { errorRules } from '../protocol/error-rules.js';

/** Where the page is, from the root of the repository. */
export const ERRORS_PAGE = 'docs/errors.md';

const HEAD = `# Errors

Every error has a dotted code from this list: programs should go by it, \`message\` may change. REST answers with

\`\`\`json
{"error": {"code": "…", "message": "a sentence for a person", "details": {}, "request_id": "req_…"}}
\`\`\`

Connect, gRPC and gRPC-Web answer with the gRPC status; code, details and request id are in an
\`attestation.v1.ErrorDetail\` among its details. An unknown RPC, and a message that breaks the protocol (none, several, or of
an unknown compression), have the status alone; on the path of an RPC 405 and 415 are a line of text. The reference,
\`{base_url}/docs/api\`, has the errors of each call.

| HTTP | code | gRPC | when |
|---|---|---|---|
`;
const FOOT = `
Written by \`npm run generate\` from \`proto/attestation/v1/errors.proto\`.
`;

/** The catalogue of errors for people, in Markdown. */
export function errorsPage(): string {
  const rows = ErrorCodeSchema.values
    .filter(({ number }) => number !== ErrorCode.UNSPECIFIED)
    .map(({ number }) => errorRules(number))
    .sort((a, b) => a.httpStatus - b.httpStatus)
    .map(
      ({ httpStatus, code, grpcCode, summary }) =>
        `| ${httpStatus} | \`${code}\` | ${grpcName(grpcCode)} | ${summary.replaceAll('|', '\\|')} |\n`,
    );
  return HEAD + rows.join('') + FOOT;
}

/** `INVALID_ARGUMENT` of 3. */
function grpcName(code: Code): string {
  return Code[code].replace(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}
