import type { ComponentChildren } from 'preact';
import { Button } from './button.js';
import { Dialog } from './dialog.js';
import { ErrorState } from './states.js';

type Props = {
  title: string;
  /** What the button says that does it. */
  action: string;
  onConfirm: () => void;
  onClose: () => void;
  /** What is done. */
  change: { isPending: boolean; error: unknown };
  children: ComponentChildren;
};

/** Asks before something that cannot be undone. */
export function Confirm({ title, action, onConfirm, onClose, change, children }: Props) {
  const { isPending, error } = change;
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {error === null ? null : <ErrorState error={error} />}
      <div class="actions">
        <Button onClick={onClose} autofocus>
          Cancel
        </Button>
        <Button isDanger onClick={onConfirm} disabled={isPending}>
          {isPending ? 'One moment…' : action}
        </Button>
      </div>
    </Dialog>
  );
}
