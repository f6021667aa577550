import { button } from './tools.ts';

const SHOWN_MS = 2_000;

/** Adds a button to each block of code that copies it. */
export function addCopyButtons(): void {
  for (const block of document.querySelectorAll('pre')) {
    const box = document.createElement('div');
    box.className = 'code';
    block.replaceWith(box);
    const element = button('Copy', () => void copy(block.textContent ?? '', element));
    element.className = 'copy';
    box.append(block, element);
  }
}

async function copy(text: string, element: HTMLButtonElement): Promise<void> {
  const done = await navigator.clipboard.writeText(text).then(
    () => 'Copied',
    () => 'Not copied',
  );
  element.textContent = done;
  setTimeout(() => {
    element.textContent = 'Copy';
  }, SHOWN_MS);
}
