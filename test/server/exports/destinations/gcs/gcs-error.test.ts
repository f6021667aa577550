import t from 'tap';
import {
  ConditionFailed,
  toGcsError,
  toImpersonationError,
} from '../../../../../src/server/exports/destinations/gcs/gcs-error.js';
import { failed } from '../../../../support/exports/gcs/answer.js';

const subject = { bucket: 'mine', account: 'a@b.iam.gserviceaccount.com' };

t.test("errors name the remedy of the bucket's owner", async (t) => {
  const cases: [number, string, string, RegExp][] = [
    [
      401,
      'authError',
      'Invalid Credentials',
      /^Google rejects the credentials \(401 authError: Invalid Credentials\)$/,
    ],
    [
      403,
      'forbidden',
      'no access',
      /^grant a@b\S+ the role Storage Object User \(roles\/storage.objectUser\) on the bucket mine/,
    ],
    [
      403,
      'retentionPolicyNotMet',
      '',
      /^the bucket mine must allow overwriting: remove its retention policy, or the hold/,
    ],
    [403, 'objectUnderActiveHold', '', /must allow overwriting/],
    [403, 'rateLimitExceeded', '', /^Google throttles requests/],
    [403, 'quotaExceeded', '', /^the quota of the bucket mine is used up/],
    [404, 'notFound', 'The specified bucket does not exist.', /^the bucket mine does not exist; create it/],
    [
      400,
      'required',
      'Bucket is a requester pays bucket but no user project provided.',
      /whose requester pays/,
    ],
    [400, 'invalid', "doesn't match calculated MD5 hash", /^the data changed on its way/],
    [429, 'rateLimitExceeded', 'slow down', /^Google throttles requests/],
    [503, 'backendError', '', /^Google throttles requests, or is not available/],
    [500, 'backendError', '', /^Google failed/],
    [302, '', '', /^Google redirects/],
    [400, 'invalid', '', /^Google refused the request/],
  ];
  for (const [status, reason, message, says] of cases)
    t.match(toGcsError(failed(status, reason, message), subject).message, says);
  t.type(toGcsError(failed(412, 'conditionNotMet', ''), subject), ConditionFailed);
});

t.test("errors name the remedy of the service account's owner", async (t) => {
  const cases: [number, RegExp][] = [
    [
      403,
      /^grant this service the role Service Account Token Creator .* on a@b.iam.gserviceaccount.com \(403 X: m\)$/,
    ],
    [404, /^the service account a@b.iam.gserviceaccount.com does not exist/],
    [429, /^Google throttles requests/],
    [400, /^Google gives no token for a@b.iam.gserviceaccount.com/],
  ];
  for (const [status, says] of cases)
    t.match(toImpersonationError(failed(status, 'X', 'm'), subject.account).message, says);
});

t.test('reads errors however they are broken', async (t) => {
  const bodies = [
    '',
    '{',
    'null',
    '[]',
    '"x"',
    '{"error":null}',
    '{"error":[1]}',
    '{"error":{"errors":[null],"message":{"a":1}}}',
    '{"error":{"errors":{"reason":1}}}',
  ];
  for (const body of bodies)
    t.match(
      toGcsError({ status: 400, headers: {}, body }, subject).message,
      /^Google refused the request \(400/,
    );
  const html = `<html>\n<title>502</title>${'x'.repeat(9000)}`;
  const { message } = toGcsError({ status: 502, headers: {}, body: html }, subject);
  t.match(message, /^Google failed \(502: <html> <title>502<\/title>x+…\)$/);
  t.ok(message.length <= 500);
});
