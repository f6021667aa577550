import t from 'tap';
import {
  AzureFailure,
  isLostRace,
  toAzureError,
} from '../../../../../src/server/exports/destinations/azure/azure-error.js';
import { findSasProblem, redactSas } from '../../../../../src/server/exports/destinations/azure/sas.js';

const subject = { container: 'mine', redact: (text: string) => redactSas(text, 'sp=rcw&sig=a%2Bb%3D') };

function failure(status: number, code: string, body = ''): AzureFailure {
  const headers: Record<string, string> = code === '' ? {} : { 'x-ms-error-code': code };
  return new AzureFailure({ status, headers, body });
}

t.test("errors name the remedy of the container's owner", async (t) => {
  const cases: [number, string, RegExp][] = [
    [404, 'ContainerNotFound', /^the container mine does not exist; create it/],
    [409, 'ContainerBeingDeleted', /^the container mine does not exist/],
    [404, '', /^the container mine does not exist at account_url \(404\)$/],
    [403, 'AuthenticationFailed', /^Azure rejects sas_token/],
    [403, 'AuthorizationPermissionMismatch', /sp=rcw, and srt=o if it has srt/],
    [403, 'AuthorizationSourceIPMismatch', /the address of this service \(sip\)/],
    [403, 'AuthorizationFailure', /check sas_token and the account's firewall/],
    [403, 'constructor', /^sas_token must permit/],
    [
      409,
      'BlobImmutableDueToPolicy',
      /must allow overwriting: remove its immutability policy, or the legal hold/,
    ],
    [412, 'LeaseIdMissing', /release the lease/],
    [400, 'Md5Mismatch', /^the data changed on its way/],
    [503, 'ServerBusy', /^Azure throttles requests/],
    [500, 'ServerBusy', /^Azure throttles requests/],
    [409, 'AccountQuotaExceeded', /is full/],
    [409, 'InvalidBlobType', /a blob of another type has the name/],
    [302, '', /redirects, which is not followed/],
    [500, 'InternalError', /^Azure failed \(500 InternalError\)$/],
    [400, 'InvalidHeaderValue', /^Azure refused the request/],
  ];
  for (const [status, code, says] of cases)
    t.match(toAzureError(failure(status, code), subject).message, says);
});

t.test('tells a lost race from other rejections', async (t) => {
  for (const [status, code] of [
    [412, 'ConditionNotMet'],
    [412, ''],
    [409, 'BlobAlreadyExists'],
    [400, 'InvalidBlockList'],
  ] as const)
    t.ok(isLostRace(failure(status, code)), code);
  for (const [status, code] of [
    [412, 'LeaseIdMissing'],
    [409, 'InvalidBlobType'],
    [404, 'ContainerNotFound'],
    [400, ''],
  ] as const)
    t.notOk(isLostRace(failure(status, code)), code);
});

t.test('reads the error of the body, however it is broken', async (t) => {
  const xml =
    '<?xml version="1.0"?><Error><Code>OutOfRangeInput</Code><Message>One of\nthe inputs\u0007</Message></Error>';
  t.match(
    toAzureError(failure(400, '', xml), subject).message,
    /\(400 OutOfRangeInput: One of the inputs\)$/,
  );
  for (const body of [
    '<Code>',
    '</Code><Code>',
    '<Code></Code>',
    '<Message>x',
    '<Code>a</Code'.repeat(1000),
    '\u0000',
  ])
    t.match(toAzureError(failure(400, '', body), subject).message, /^Azure refused the request \(400\)$/);
  const long = `<Message>${'é'.repeat(100_000)}</Message>`;
  t.ok(toAzureError(failure(400, '', long), subject).message.length <= 500);
});

t.test('hides the signature wherever Azure repeats it', async (t) => {
  const echo =
    '<Code>sp=rcw&sig=a%2Bb%3D</Code><Message>sig=a%2Bb%3D and a+b= and sp=rcw&sig=a%2Bb%3D</Message>';
  const { message } = toAzureError(failure(400, '', echo), subject);
  t.notMatch(message, /a%2Bb|a\+b=/);
  t.match(message, /400 \[redacted\]: sig=\[redacted\] and \[redacted\] and \[redacted\]/);
  for (const given of ['a%2Bb%3D', 'a%2bb%3d', 'a+b=', 'a+b%3D'])
    t.equal(
      redactSas(`${given} a%2Bb%3D a%2bb%3d a+b=`, `sig=${given}&sp=r`),
      Array(4).fill('[redacted]').join(' '),
      given,
    );
  t.equal(redactSas('%zz', '?sp=r&sig=%zz'), '[redacted]');
  const long = `<Code>${'x'.repeat(60)}sp=rcw&sig=a%2Bb%3D</Code>`;
  t.notMatch(toAzureError(failure(400, '', long), subject).message, /sp=r|sig/, 'nor a part of it');
});

t.test('a malformed signature is found before a request', async (t) => {
  const now = Date.parse('2026-01-02T03:04:05Z');
  const cases: [string, RegExp | undefined][] = [
    ['sv=2024-11-04&sp=rcwl&se=2026-01-02T03:04:06Z&sr=c&sig=a%3D', undefined],
    ['?sv=2024-11-04&sp=rcw&se=2026-01-03&sr=c&sig=a%3D', undefined],
    ['sv=2024-11-04&si=policy&sr=c&sig=a%3D', undefined],
    ['sv=2024-11-04&sp=rcw&se=soon&sig=a%3D', undefined],
    ['sp=rcw&se=2026-01-02T03:04:05Z&sig=a', /expired at 2026-01-02T03:04:05Z; replace it/],
    ['sp=rcw&se=2026-01-02&sig=a', /expired at 2026-01-02;/],
    ['sp=l&sig=a', /lacks r and w$/],
    ['sp=rc&sig=a', /lacks w$/],
    ['sp=rw&sr=b&sig=a', /must be of the container/],
    ['sp=rcw', /is not a shared access signature/],
    ['sp=rcw&sig=a b', /is not a shared access signature/],
    ['sig=a#b', /is not a shared access signature/],
    ['"', /is not a shared access signature/],
  ];
  for (const [token, problem] of cases) {
    const found = findSasProblem(token, now);
    if (problem === undefined) t.equal(found, undefined);
    else t.match(found, problem);
  }
});
