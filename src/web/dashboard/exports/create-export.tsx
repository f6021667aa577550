import { create, getOption } from '@bufbuild/protobuf';
import { FieldOptionsSchema } from '@bufbuild/protobuf/wkt';
import { useState } from 'preact/hooks';
import { members as membersOption } from '../../../../gen/attestation/options/v1/options_pb.js';
import {
  type DestinationKind,
  DestinationKindSchema,
  ExportDestinationSchema,
  ExportService,
  ExportStart,
} from '../../../../gen/attestation/v1/exports_pb.js';
import { enumName } from '../../../protocol/enum-names.js';
import { Button } from '../ui/button.js';
import { Choice } from '../ui/choice.js';
import { Dialog } from '../ui/dialog.js';
import { Field } from '../ui/field.js';
import { Segments } from '../ui/segments.js';
import { ErrorState } from '../ui/states.js';
import { useChange } from '../use-change.js';

/** The kinds of destinations, each with the members that the protos give it. */
const KINDS = DestinationKindSchema.values.flatMap((value) => {
  const members = getOption(value, membersOption);
  if (members === undefined || members.required.length === 0) return [];
  const { number } = value;
  return [
    {
      number,
      name: enumName(DestinationKindSchema, number),
      required: members.required,
      optional: members.optional,
    },
  ];
});
const STARTS = [
  ['now', 'What comes from now on'],
  ['beginning', 'Everything from the beginning'],
] as const;

/** The form that adds an export; the service tests the destination before it keeps it. */
export function CreateExport({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState(KINDS[0]?.name ?? '');
  const [start, setStart] = useState<'now' | 'beginning'>('now');
  const [texts, setTexts] = useState<Record<string, string>>({});
  const add = useChange(ExportService.method.createExport);
  const kind = KINDS.find((one) => one.name === name);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (kind === undefined) return;
    const members = Object.fromEntries(
      [...kind.required, ...kind.optional].flatMap((member) =>
        texts[member] ? [[localName(member), texts[member]]] : [],
      ),
    );
    const destination = create(ExportDestinationSchema, { kind: kind.number as DestinationKind, ...members });
    add.mutate(
      { destination, start: start === 'now' ? ExportStart.NOW : ExportStart.BEGINNING },
      { onSuccess: onClose },
    );
  };
  return (
    <Dialog title="Add an export" onClose={onClose}>
      <form onSubmit={submit}>
        <Choice
          label="Kind"
          options={KINDS.map((one) => [one.name, one.name])}
          value={name}
          onChange={setName}
        />
        {[...(kind?.required ?? []), ...(kind?.optional ?? [])].map((member) => (
          <Field
            key={`${name} ${member}`}
            label={`${member.replaceAll('_', ' ')}${kind?.required.includes(member) ? '' : ' (optional)'}`}
            type={isSecret(member) ? 'password' : 'text'}
            autocomplete="off"
            value={texts[member] ?? ''}
            onChange={(text) => setTexts((before) => ({ ...before, [member]: text }))}
          />
        ))}
        <Segments label="What to copy" options={STARTS} value={start} onChange={setStart} />
        {add.error === null ? null : <ErrorState error={add.error} />}
        <div class="actions">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" isPrimary disabled={add.isPending}>
            {add.isPending ? 'Testing the destination…' : 'Add export'}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function localName(member: string): string {
  return ExportDestinationSchema.fields.find(({ name }) => name === member)?.localName ?? member;
}

function isSecret(member: string): boolean {
  const field = ExportDestinationSchema.fields.find(({ name }) => name === member);
  return (field?.proto.options ?? create(FieldOptionsSchema)).debugRedact;
}
