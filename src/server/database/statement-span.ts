import { activeSpan, beginSpan, errorName } from '../telemetry/spans.js';

/** A statement of the driver, before it is sent. */
export type Statement = {
  handler: (statement: Statement) => unknown;
  resolve: (value: unknown) => unknown;
  reject: (error: unknown) => unknown;
};

const MAX_TEXT = 1_000;

/**
 * Makes a statement a span from when it is sent or queued until its result, if it is made in one that is recorded. Returns
 * it. The span has the statement's text, with `?` for each parameter. A fragment of another statement is never sent itself.
 */
export function traceStatement<T>(made: T, pool: string): T {
  if (activeSpan() === undefined) return made;
  const statement = made as Partial<Statement> & { strings?: readonly string[] };
  const { handler, strings = [] } = statement;
  if (handler === undefined) return made;
  statement.handler = Object.assign((sent: Statement) => {
    const text = strings.join('?').replaceAll(/\s+/g, ' ').trim().slice(0, MAX_TEXT);
    const operation = /^\w+/.exec(text)?.[0].toUpperCase() ?? 'SQL';
    const attributes = { 'db.system.name': 'postgresql', 'db.query.text': text, 'attest.pool': pool };
    const span = beginSpan(operation, { kind: 'client', attributes });
    const { resolve, reject } = sent;
    sent.resolve = (value) => {
      span?.end({});
      return resolve(value);
    };
    sent.reject = (error) => {
      span?.end({}, errorName(error));
      return reject(error);
    };
    return handler(sent);
  }, handler);
  return made;
}
