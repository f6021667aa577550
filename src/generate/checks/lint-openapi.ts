/** Lints the OpenAPI document, offline: prints every finding, warnings included, and fails when there is one. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createConfig, lintFromString } from '@redocly/openapi-core';

const DOCUMENT = new URL('../../../gen/openapi/openapi.json', import.meta.url);

const config = await createConfig({
  extends: ['recommended-strict'],
  rules: {
    'no-invalid-media-type-examples': 'error',
    'no-invalid-parameter-examples': 'error',
    'no-invalid-schema-examples': 'error',
    'operation-description': 'error',
    'tag-description': 'error',
    'no-http-verbs-in-paths': 'error',
    'no-duplicated-tag-names': 'error',
  },
});
const problems = await lintFromString({
  source: readFileSync(DOCUMENT, 'utf8'),
  absoluteRef: fileURLToPath(DOCUMENT),
  config,
});
for (const { ruleId, message, location } of problems) {
  console.error(`${location[0]?.pointer ?? ''} ${ruleId}: ${message}`);
}
if (problems.length > 0) process.exitCode = 1;
