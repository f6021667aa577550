/** The only file that reads `process.env`. */
import type { Env } from './settings.js';

/** The environment variables of this process. */
export function processEnv(): Env {
  return process.env;
}

/** Keeps the SDK of AWS from warning, on standard error, of a version of Node that the service supports. */
export function silenceAwsNodeWarning(): void {
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED = 'true';
}
