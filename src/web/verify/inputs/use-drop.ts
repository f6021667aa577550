import { useEffect, useState } from 'preact/hooks';
import { type FolderSource, takeDropped } from '../folder/list-folder.js';
import type { Inputs } from './use-inputs.js';

/** Takes what is dropped anywhere on the page; in a card it is what the card says. Returns whether something is dragged. */
export function useDrop(inputs: Inputs): boolean {
  const [isDragging, setDragging] = useState(false);
  useEffect(() => {
    const over = (event: DragEvent) => {
      event.preventDefault();
      // Between two elements of the page it has not left the page.
      setDragging(event.type === 'dragover' || event.relatedTarget !== null);
    };
    const drop = (event: DragEvent) => {
      setDragging(false);
      const dropped = takeDropped(event.dataTransfer);
      // The browser puts the folder into the input.
      const isForInput = dropped.length === 1 && !(dropped[0] instanceof File) && isFolderDrop(event.target);
      if (isForInput) return;
      event.preventDefault();
      take(inputs, dropped, event);
    };
    addEventListener('dragover', over);
    addEventListener('dragleave', over);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragover', over);
      removeEventListener('dragleave', over);
      removeEventListener('drop', drop);
    };
  });
  return isDragging;
}

function isFolderDrop(target: EventTarget | null): boolean {
  return target instanceof Element && target.matches('.folder-drop');
}

function take(
  inputs: Inputs,
  dropped: readonly (File | FolderSource)[],
  { target, clientX, clientY }: DragEvent,
): void {
  const [only] = dropped.length === 1 ? dropped : [];
  const under = isFolderDrop(target) ? document.elementsFromPoint(clientX, clientY)[1] : target;
  const card = under instanceof Element ? under.closest<HTMLElement>('[data-takes]') : null;
  const takes = card?.dataset.takes;
  if (only !== undefined && takes === 'artifact') inputs.giveArtifact(only);
  else if (only instanceof File && takes !== undefined) inputs.giveProof(only, takes as 'bundle' | 'set');
  else inputs.giveDropped(dropped);
}
