/** The admin API of a running service. */
import {
  type DescMessage,
  type DescMethodUnary,
  getOption,
  type JsonObject,
  type MessageInitShape,
} from '@bufbuild/protobuf';
import { ApiKeyService } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { AuditService } from '../../../gen/attestation/admin/v1/audit_pb.js';
import { ProjectExportService } from '../../../gen/attestation/admin/v1/exports_pb.js';
import { LogService } from '../../../gen/attestation/admin/v1/logs_pb.js';
import { PersonService } from '../../../gen/attestation/admin/v1/people_pb.js';
import { ProjectService } from '../../../gen/attestation/admin/v1/projects_pb.js';
import { SessionService } from '../../../gen/attestation/admin/v1/sessions_pb.js';
import { SubmissionService } from '../../../gen/attestation/admin/v1/submissions_pb.js';
import { TrustRuleService } from '../../../gen/attestation/admin/v1/trust_rules_pb.js';
import { TufService } from '../../../gen/attestation/admin/v1/tuf_pb.js';
import { UsageService } from '../../../gen/attestation/admin/v1/usage_pb.js';
import { WitnessService } from '../../../gen/attestation/admin/v1/witnesses_pb.js';
import { Access, rules } from '../../../gen/attestation/options/v1/options_pb.js';
import type { App } from '../app.js';
import type { Surface } from './rpc-clients.js';
import type { Outcome } from './surfaces.js';

/** Every RPC of the admin API that wants the admin token. */
export const ADMIN_METHODS = [
  ProjectService,
  ApiKeyService,
  UsageService,
  AuditService,
  LogService,
  WitnessService,
  ProjectExportService,
  SessionService,
  TufService,
  SubmissionService,
  TrustRuleService,
  PersonService,
]
  .flatMap(({ methods }) => methods as DescMethodUnary[])
  .filter((method) => getOption(method, rules).access === Access.ADMIN);

/** What tests do with the admin API. */
export type Admin = {
  token: string;
  /** Connect and gRPC; there is no REST. */
  surfaces: Surface[];
  /** One call with the admin token by Connect. */
  call: <I extends DescMessage>(
    method: DescMethodUnary<I>,
    input: MessageInitShape<I>,
    headers?: Record<string, string>,
  ) => Promise<Outcome>;
  /** The same, of which the test expects an answer. */
  ask: <I extends DescMessage>(
    method: DescMethodUnary<I>,
    input: MessageInitShape<I>,
    headers?: Record<string, string>,
  ) => Promise<JsonObject>;
};

/** The admin API of an app, or of one of its processes; keys that it makes are secrets of the app's recorder. */
export function adminOf(app: App, baseUrl = app.baseUrl): Admin {
  const token = app.config.secrets.adminToken ?? '';
  app.recorder.secrets.add(token);
  const surfaces = app
    .surfaces(baseUrl)
    .filter(({ name }) => name !== 'REST')
    .map((surface): Surface => ({ ...surface, call: remembering(app, surface.call) }));
  const [connect] = surfaces;
  if (connect === undefined) throw new Error('there is no surface');
  const call: Admin['call'] = (method, input, headers) => connect.call(method, input, token, headers);
  return {
    token,
    surfaces,
    call,
    ask: async (method, input, headers) => {
      const outcome = await call(method, input, headers);
      if (outcome.code !== 'ok') throw new Error(`${method.name}: ${outcome.code} ${outcome.message}`);
      return outcome.response;
    },
  };
}

function remembering({ recorder }: App, call: Surface['call']): Surface['call'] {
  return async (...args) => {
    const outcome = await call(...args);
    const { secret } = outcome.response;
    if (typeof secret === 'string') recorder.secrets.add(secret);
    return outcome;
  };
}
