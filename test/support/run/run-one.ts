// Runs the tests that its arguments name; what begins with a dash is passed on to tap.
import { findImports } from './imports.js';
import { filesLacking, findLacking, sourceOf } from './lacking.js';
import { report, runTests } from './run-tests.js';
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
  const imports = await findImports(root, tests.files);
  const lacking = await findLacking(imports);
  const left = filesLacking(lacking);
  const files = tests.files.filter((file) => !left.has(sourceOf(file)));
  const servers = files.some((file) => needsServers(imports.get(file)!));
  // Without a file tap would run all of them.
  process.exitCode =
    files.length === 0
      ? report(0, { passed: 0, failed: 0, skipped: 0 }, lacking)
      : await runTests([...flags, ...files], { servers, lacking });
}
