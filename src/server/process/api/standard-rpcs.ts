import type { DescService } from '@bufbuild/protobuf';
import { Health } from '../../../../gen/grpc/health/v1/health_pb.js';
import type { PublicRpc } from '../../core/public-rpc.js';
import { healthRpcs } from '../../rpc/standard/health.js';
import { REFLECTION_SERVICES, reflectionRpcs } from '../../rpc/standard/reflection.js';

/** The standard services of gRPC servers, open to anyone: health, and reflection over all services. */
export function standardRpcs(
  services: readonly DescService[],
  isReady: () => Promise<boolean>,
): readonly PublicRpc[] {
  const names = services.map(({ typeName }) => typeName);
  return [
    ...healthRpcs({ services: names, isReady, monotonicMs: () => performance.now() }),
    ...reflectionRpcs([...services, Health, ...REFLECTION_SERVICES]),
  ];
}
