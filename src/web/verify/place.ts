/** Where the page is: served at the verification address, or a file of its own with trust roots inside. */

/** Trust roots that the page carries, and what it says of them. */
type EmbeddedRoots = { text: string; origin: string; savedAt: string };

/** The trust roots inside the page, if it is a file of its own. */
export function findEmbeddedRoots(): EmbeddedRoots | undefined {
  const element = document.querySelector<HTMLElement>('#trust-roots');
  if (element === null) return undefined;
  const { origin = '', savedAt = '' } = element.dataset;
  return { text: element.textContent ?? '', origin, savedAt };
}

/** A URL below the verification address. */
export function urlBelow(path: string): URL {
  return new URL(`./${path}`, location.href.replace(/[?#].*$/, ''));
}
