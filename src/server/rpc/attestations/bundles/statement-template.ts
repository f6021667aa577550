/** The statements of an environment: one template, made by their renderer. */
import { type StatementFields, statementText } from '../../../../proof/statement/statement.js';
import type { EnvironmentName } from '../../../../protocol/environment.js';
import { makeTemplate, type TextTemplate } from '../../../json/template.js';

/** Where {@link statementValues} has the value of a field. */
export const STATEMENT_VALUES = { commitment: 0, id: 1, submittedAt: 2, artifact: 3, schema: 4, project: 5 };

/** The values of a statement as they are spelled in it, save its environment. */
export function statementValues(fields: Omit<StatementFields, 'environment'>): string[] {
  return [...ownStatementValues(fields), spellValue(fields.project)];
}

/** The same without the project. */
export function ownStatementValues(fields: Omit<StatementFields, 'environment' | 'project'>): string[] {
  const { commitment, submissionId, submittedAt, artifactSha256, schema } = fields;
  return [commitment, submissionId, submittedAt, artifactSha256, spellValue(schema)];
}

/** Spells a value as it is in a statement between its quotes. */
export function spellValue(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

const templates = new Map<EnvironmentName, TextTemplate>();

/** The template of the statements of an environment: 0.4 µs a statement, by `statementText` 1.2. */
export function statementTemplate(environment: EnvironmentName): TextTemplate {
  const known = templates.get(environment);
  if (known !== undefined) return known;
  const template = makeTemplate(statementText, statementValues, [
    sample(environment, 1),
    sample(environment, 2),
  ]);
  templates.set(environment, template);
  return template;
}

function sample(environment: EnvironmentName, n: 1 | 2): StatementFields {
  return {
    artifactSha256: `sample artifact ${n}`,
    submissionId: `sample id ${n}`,
    project: `sample project ${n}`,
    submittedAt: `sample time ${n}`,
    environment,
    schema: `sample schema ${n}`,
    commitment: `sample commitment ${n}`,
  };
}
