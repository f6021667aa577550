// Runs the tests that its arguments name; what begins with a dash is passed on to tap.
import { runTests } from './run-tests.js';
import { findNamedTests, needsServers } from './test-files.js';

const root = process.cwd();
const [flags, names] = [true, false].map((isFlag) =>
  process.argv.slice(2).filter((argument) => argument.startsWith('-') === isFlag),
) as [string[], string[]];
const tests = findNamedTests(root, names);
if ('problem' in tests || names.length === 0) {
  console.error('problem' in tests ? tests.problem : 'Name a test file: npm run test:one -- test/….test.ts');
  process.exitCode = 2;
} else {
  const needs = await Promise.all(tests.files.map((file) => needsServers(root, file)));
  process.exitCode = await runTests([...flags, ...tests.files], { servers: needs.includes(true) });
}
