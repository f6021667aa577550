/** The place of the page's buttons. Throws if the page has none. */
export function tools(): Element {
  const found = document.querySelector('.tools');
  if (found === null) throw new Error('the page has no place for tools');
  return found;
}

/** A button with a text. */
export function button(text: string, onClick: () => void): HTMLButtonElement {
  const element = document.createElement('button');
  element.type = 'button';
  element.textContent = text;
  element.addEventListener('click', onClick);
  return element;
}
