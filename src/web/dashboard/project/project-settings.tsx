import { useState } from 'preact/hooks';
import { Link } from 'wouter';
import {
  type Project,
  ProjectService,
  type PublicLookup,
} from '../../../../gen/attestation/admin/v1/projects_pb.js';
import { Button } from '../ui/button.js';
import { Choice } from '../ui/choice.js';
import { Field } from '../ui/field.js';
import { ErrorState } from '../ui/states.js';
import { useChange } from '../use-change.js';
import { LOOKUPS } from './lookups.js';

/** The form of a project's name and public look-up. */
export function ProjectSettings({ project }: { project: Project }) {
  const [name, setName] = useState(project.name);
  const [lookup, setLookup] = useState(String(project.publicLookup));
  const update = useChange(ProjectService.method.updateProject);
  const isChanged = name !== project.name || lookup !== String(project.publicLookup);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    update.mutate({ id: project.id, name, publicLookup: Number(lookup) as PublicLookup });
  };
  return (
    <section class="card" aria-labelledby="settings">
      <h2 id="settings">Settings</h2>
      <form onSubmit={submit}>
        <Field label="Name" value={name} onChange={setName} required maxLength={200} />
        <Choice label="Public look-up" options={LOOKUPS} value={lookup} onChange={setLookup} />
        <p class="hint">
          With public look-up, those who drop a file on the verify page find its proof bundles and badges.
          Bundles hold no metadata. Changes are in the <Link href="/audit">audit log</Link>.
        </p>
        {update.error === null ? null : <ErrorState error={update.error} />}
        <div class="actions">
          <span role="status">{update.isSuccess && !isChanged ? 'Saved.' : ''}</span>
          <Button type="submit" isPrimary disabled={!isChanged || name === '' || update.isPending}>
            {update.isPending ? 'Saving…' : 'Save'}
          </Button>
        </div>
      </form>
    </section>
  );
}
