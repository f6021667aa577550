/** The server's HTTP/2, by h2spec: a client that breaks RFC 9113 and RFC 7541 in every way it knows. */
import { run } from './command.js';
import { accepting, type Row } from './rows.js';
import type { Scene } from './scene.js';
import { tool } from './tools.js';

const TIMEOUT_SECONDS = '5';
const SUMMARY = /^(\d+) tests, (\d+) passed, 0 skipped, (\d+) failed$/m;
/**
 * The one case that fails: it opens the connection with other bytes than the preface of HTTP/2. On this port they are a
 * malformed request of HTTP/1.1 and get its answer, 400, before the connection is closed.
 */
const ANSWERED_BY_HTTP1 = 'Sends invalid connection preface';

/** All cases: those of any endpoint, of HTTP/2 and of HPACK. */
export async function checkHttp2({ service }: Pick<Scene, 'service'>): Promise<Row[]> {
  const { hostname, port } = new URL(service.baseUrl);
  const args = ['-h', hostname, '-p', port, '-o', TIMEOUT_SECONDS, '-P', '/v1/x'];
  const { output } = await run(tool('h2spec'), args);
  const [, all = '0', passed = '0', failed] = SUMMARY.exec(output) ?? [];
  const failures = output.slice(output.indexOf('Failures:')).match(/× \d+: .*/g) ?? [];
  const isKnown = failed === '1' && failures.length === 1 && failures[0]?.includes(ANSWERED_BY_HTTP1);
  const said = { code: isKnown ? 0 : 1, output };
  return [
    accepting('h2spec', `HTTP/2: ${passed} of ${all} cases, and one that HTTP/1.1 answers`, said, [SUMMARY]),
  ];
}
