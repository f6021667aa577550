/** Events: each that is due was taken at least once, under the same id on every attempt, by nobody else. */
import type { Evidence, Findings } from './check.js';
import type { SeenBatch } from './observe.js';

const TYPES: ReadonlyMap<number, string> = new Map([
  [2, 'attestation.witnessed'],
  [3, 'attestation.partial'],
  [4, 'attestation.failed'],
]);

/** Reports what does not hold. */
export function checkEvents(findings: Findings, evidence: Evidence): void {
  const taken = checkDeliveries(findings, evidence);
  const { submissions, batches, projects } = evidence.observed.tables;
  const owners = new Map(Object.entries(projects).map(([owner, project]) => [project, owner]));
  const statusesAt = indexBatches(batches);
  for (const { id, environment, index, project } of submissions) {
    for (const status of statusesAt(environment, index)) {
      findings.looked('due events found');
      const type = TYPES.get(status);
      if (!taken.has(`${owners.get(project)} ${type} ${id}`))
        findings.wrong('event missing', `${type} of ${id} was never taken by its endpoint`);
    }
  }
}

/** @returns owner, type and submission of what was taken */
function checkDeliveries(findings: Findings, { record, observed }: Evidence): Set<string> {
  const { projects, submissions } = observed.tables;
  const projectOf = new Map(submissions.map(({ id, project }) => [id, project]));
  const ids = new Map<string, string>();
  const subjects = new Map<string, string>();
  const taken = new Set<string>();
  for (const delivery of record.delivered) {
    const { owner, event, type, submission } = delivery;
    findings.looked('deliveries compared');
    const subject = `${type} ${submission}`;
    if ((ids.get(subject) ?? event) !== event)
      findings.wrong('event id', `${subject} came as ${ids.get(subject)} and as ${event}`);
    if ((subjects.get(event) ?? subject) !== subject)
      findings.wrong('event id', `${event} stood for ${subjects.get(event)} and for ${subject}`);
    ids.set(subject, event);
    subjects.set(event, subject);
    if (!delivery.genuine) findings.wrong('event signature', `${event} to ${owner} is signed by nobody`);
    if (projectOf.get(submission) !== projects[owner])
      findings.wrong('stranger', `${owner} was told of ${submission} by ${event}`);
    if (delivery.taken) taken.add(`${owner} ${subject}`);
  }
  return taken;
}

/** Finds what the batch that holds an index has gone through. */
function indexBatches(batches: readonly SeenBatch[]) {
  const byEnvironment = new Map<string, SeenBatch[]>();
  for (const batch of batches)
    byEnvironment.set(batch.environment, [...(byEnvironment.get(batch.environment) ?? []), batch]);
  const at = new Map<string, number>();
  return (environment: string, index: number): readonly number[] => {
    const list = byEnvironment.get(environment) ?? [];
    // Submissions come in the order of their indexes.
    let i = at.get(environment) ?? 0;
    if ((list[i]?.first ?? 0) > index) i = 0;
    while (i < list.length && list[i]!.size <= index) i++;
    at.set(environment, i);
    return list[i]?.statuses ?? [];
  };
}
