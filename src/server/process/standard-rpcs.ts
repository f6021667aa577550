import type { DescService } from '@bufbuild/protobuf';
import type { ConnectRouter } from '@connectrpc/connect';
import { Health } from '../../../gen/grpc/health/v1/health_pb.js';
import { healthRoutes } from '../rpc/standard/health.js';
import { REFLECTION_SERVICES, reflectionRoutes } from '../rpc/standard/reflection.js';

/** What every gRPC server has beside its own services, for anyone: health, and reflection over all that is served. */
export function standardRpcs(
  services: readonly DescService[],
  isReady: () => Promise<boolean>,
): (router: ConnectRouter) => void {
  const addHealth = healthRoutes({
    services: services.map(({ typeName }) => typeName),
    isReady,
    monotonicMs: () => performance.now(),
  });
  const addReflection = reflectionRoutes([...services, Health, ...REFLECTION_SERVICES]);
  return (router) => {
    addHealth(router);
    addReflection(router);
  };
}
