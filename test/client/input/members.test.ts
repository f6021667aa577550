/** Members of requests: one that is unknown or of another type is an error before any call. */
import type { DescMessage } from '@bufbuild/protobuf';
import t from 'tap';
import { BatchService } from '../../../gen/attestation/v1/batches_pb.js';
import { InfoService } from '../../../gen/attestation/v1/service_pb.js';
import {
  AttestationService,
  type Client,
  ExportService,
  WebhookService,
} from '../../../src/client/client.js';
import { serveNothing } from './silent-server.js';

const SERVICES = {
  attestations: AttestationService,
  batches: BatchService,
  webhooks: WebhookService,
  exports: ExportService,
  service: InfoService,
} as const;

type Method = (request?: unknown, options?: unknown) => Promise<unknown>;

/** The methods of a client, each with the type of its request. */
function* methodsOf(client: Client): Generator<{ name: string; call: Method; input: DescMessage }> {
  for (const [name, service] of Object.entries(SERVICES)) {
    const resource = client[name as keyof typeof SERVICES] as unknown as Record<string, Method>;
    const names = new Set(Object.keys(resource));
    for (const { localName, input, methodKind } of service.methods) {
      const short = [...names].find(
        (one) => localName.replace(/(Attestation|Batch|Webhook|Export|Info)(es|s)?(?![a-z])/, '') === one,
      );
      if (methodKind === 'unary' && short !== undefined) {
        yield { name: `${name}.${short}`, call: resource[short] as Method, input };
      }
    }
  }
}

/** A function is of no field's type, and neither is a symbol. */
const OF_NO_TYPE = [() => 1, Symbol('s'), null, new Map()];

t.test(
  'each member of each request is known and of its type, or a TypeError with its JSON pointer',
  async (t) => {
    const { client, calls } = await serveNothing(t);
    let methods = 0;
    for (const { name, call, input } of methodsOf(client)) {
      methods++;
      const rejects = (request: unknown, message: RegExp) =>
        t.rejects(call(request), { name: 'TypeError', message }, `${name} ${message}`);
      await rejects({ nope: 1 }, /^\/nope is not known: \w+ has /);
      await rejects({ [Symbol('nope')]: 1 }, /is not known/);
      for (const given of [[], new Date(), new Map(), 7, true, () => 1]) {
        await rejects(given, /^the argument must be an object with members of /);
      }
      for (const field of input.fields) {
        for (const value of OF_NO_TYPE) {
          const at = new RegExp(`^/${field.localName}(/0)? (must|is) `);
          await rejects({ [field.localName]: value }, at);
          if (field.fieldKind === 'list') await rejects({ [field.localName]: [value] }, at);
        }
        if (field.name === field.localName) continue;
        const spelled = new RegExp(`^/${field.name} is not known: ${input.name} has ${field.localName}$`);
        await rejects({ [field.name]: 'x' }, spelled);
      }
      await t.rejects(call({}, { timeout: 5 }), {
        name: 'TypeError',
        message: /^there is no option timeout: there are /,
      });
      await t.rejects(call({}, 5), { name: 'TypeError', message: /options must be an object/ });
    }
    t.ok(methods > 20, `${methods} methods`);
    t.equal(calls(), 0);
  },
);
