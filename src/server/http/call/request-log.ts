import type { Logger } from '../../core/logger.js';
import type { Observation } from '../socket/requests.js';

/** Writes the line of each finished request: who, what, outcome, duration; no header, body, query or token. */
export function createRequestLog(log: Logger): (observation: Observation) => void {
  // No redaction: it costs more than the line itself, and the members are known.
  const lines = log.child({}, { redact: [] });
  return (observation) => {
    if (lines.isLevelEnabled('info')) lines.info(describe(observation), 'request');
  };
}

function describe(observation: Observation): Record<string, string | number | undefined> {
  return {
    request_id: observation.requestId,
    surface: observation.protocol,
    method: observation.method,
    path: observation.path,
    rpc: observation.rpc,
    status: observation.status,
    error: observation.error,
    duration_ms: Math.round(observation.durationMs * 100) / 100,
    api_key_id: observation.apiKeyId,
    session_id: observation.sessionId,
    project_id: observation.projectId,
  };
}
