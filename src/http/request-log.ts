import type { Logger } from '../logger.js';
import type { Observation } from './requests.js';

/** Writes the line of a finished request: who, what, outcome, duration; no header, body, query or token. */
export function logRequest(log: Logger, observation: Observation): void {
  log.info(
    {
      request_id: observation.requestId,
      surface: observation.surface,
      method: observation.method,
      path: observation.path,
      rpc: observation.rpc,
      status: observation.status,
      error: observation.error,
      duration_ms: Math.round(observation.durationMs * 100) / 100,
      api_key_id: observation.apiKeyId,
      project_id: observation.projectId,
    },
    'request',
  );
}
