import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';

type Props = {
  title: string;
  onClose: () => void;
  /** Whether only its own buttons close it. */
  isFirm?: boolean;
  children: ComponentChildren;
};

/** A dialog over the page, open as long as it is rendered. */
export function Dialog({ title, onClose, isFirm = false, children }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    // Gives the focus back.
    return () => shown?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby={id}
      closedby={isFirm ? 'none' : 'any'}
      onCancel={(event) => {
        event.preventDefault();
        if (!isFirm) onClose();
      }}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}
