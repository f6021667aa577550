import type { MessageInitShape } from '@bufbuild/protobuf';
import type { Test } from 'tap';
import type { ApiKeyLimitsSchema } from '../../../gen/attestation/admin/v1/api_keys_pb.js';
import { TrustRuleService } from '../../../gen/attestation/admin/v1/trust_rules_pb.js';
import { Environment } from '../../../gen/attestation/v1/environment_pb.js';
import type { App } from '../app.js';
import { adminOf } from '../calling/admin.js';
import { githubClaims, startIssuer } from './issuer.js';

/** A token that a rule of a project trusts, of an issuer that runs until the test ends. It has no id: it is not used up. */
export async function trustedToken(
  t: Pick<Test, 'teardown'>,
  app: App,
  projectId: string,
  limits: MessageInitShape<typeof ApiKeyLimitsSchema> = {},
): Promise<string> {
  const issuer = await startIssuer(t);
  await adminOf(app).ask(TrustRuleService.method.createTrustRule, {
    projectId,
    environment: Environment.LIVE,
    issuer: issuer.url,
    conditions: { repository: 'acme/app' },
    limits,
  });
  return issuer.sign(githubClaims(issuer.url, app.baseUrl, { jti: undefined }));
}
