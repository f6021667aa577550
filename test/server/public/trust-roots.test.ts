/** The trust roots as the API answers them. */
import t from 'tap';
import { InfoService } from '../../../gen/attestation/v1/service_pb.js';
import { startApp } from '../../support/app.js';
import { newKey } from '../../support/calling/test-keys.js';
import { assertNoLeaks } from '../../support/judging/recorder.js';
import { TIME } from './response-times.js';

const app = await startApp(t);
const surfaces = app.surfaces();
const { getTrustRoots } = InfoService.method;

t.test('trust roots name every key, log, authority and policy, the same on every surface', async (t) => {
  const { key } = await newKey(app, { scopes: [] });
  const { json, headers } = await app.rest('/v1/service/trust_roots', { apiKey: key });
  t.same(Object.keys(json), [
    'timestamp_authorities',
    'transparency_logs',
    'log_witnesses',
    'dsse_signing_keys',
    'timestamp_calendars',
    'evm_contracts',
    'policies',
    'updated_at',
    'opentimestamps_witnesses',
  ]);
  t.match(json, {
    timestamp_authorities: [
      { name: 'self-tsa', url: '', operator: 'self', cert_chain_pem: [/BEGIN/, /BEGIN/], valid_from: TIME },
    ],
    transparency_logs: ['live', 'test'].map((name) => ({
      environment: name,
      origin: `${name}.log.example.com`,
      verifier_key: new RegExp(`^${name}\\.log\\.example\\.com\\+[0-9a-f]{8}\\+[A-Za-z0-9+/=]+$`),
      public_key_pem: /BEGIN PUBLIC KEY/,
      url: `${app.verifyUrl}/log/${name}`,
      valid_from: TIME,
      valid_to: undefined,
    })),
    log_witnesses: [],
    dsse_signing_keys: ['live', 'test'].map((environment) => ({
      environment,
      fingerprint_sha256: /^[0-9a-f]{64}$/,
      algorithm: 'ecdsa-p256-sha256',
      public_key_pem: /BEGIN PUBLIC KEY/,
      valid_from: TIME,
    })),
    timestamp_calendars: [],
    evm_contracts: [],
    policies: ['live', 'test'].map((environment) => ({
      environment,
      version: 1,
      required: ['log', 'self-tsa'],
      deadline: '3600s',
      valid_from: TIME,
      valid_to: undefined,
    })),
    updated_at: TIME,
  });
  const again = { 'if-none-match': String(headers.etag) };
  t.equal((await app.rest('/v1/service/trust_roots', { apiKey: key, headers: again })).status, 304);
  const [rest, ...others] = await Promise.all(surfaces.map(({ call }) => call(getTrustRoots, {}, key)));
  for (const { response } of others) t.same(response, rest!.response);
});

t.test('nothing secret was logged, or answered with an error', async (t) => {
  assertNoLeaks(t, app.recorder);
});
