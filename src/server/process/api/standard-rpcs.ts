import type { DescService } from '@bufbuild/protobuf';
import type { ConnectRouter, ServiceImpl } from '@connectrpc/connect';
import { Health } from '../../../../gen/grpc/health/v1/health_pb.js';
import { ServerReflection } from '../../../../gen/grpc/reflection/v1/reflection_pb.js';
import { ServerReflection as ServerReflectionAlpha } from '../../../../gen/grpc/reflection/v1alpha/reflection_pb.js';
import { healthService } from '../../rpc/standard/health.js';
import { REFLECTION_SERVICES, reflectionService } from '../../rpc/standard/reflection.js';

/** The standard services of gRPC servers, open to anyone: health, and reflection over all services. */
export function standardServices(
  services: readonly DescService[],
  isReady: () => Promise<boolean>,
): (router: ConnectRouter) => void {
  const names = services.map(({ typeName }) => typeName);
  const health = healthService({ services: names, isReady, monotonicMs: () => performance.now() });
  const reflection = reflectionService([...services, Health, ...REFLECTION_SERVICES]);
  return (router) => {
    router.service(Health, health);
    router.service(ServerReflection, reflection);
    router.service(ServerReflectionAlpha, reflection as unknown as ServiceImpl<typeof ServerReflectionAlpha>);
  };
}
