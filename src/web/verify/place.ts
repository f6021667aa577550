/** Where the page is: served at the verification address, or a file of its own with trust roots inside. */

const CERTIFICATE = /\/certificate\/(sub_[0-7][0-9A-HJKMNP-TV-Z]{25})$/;

/** Trust roots that the page carries, and what it says of them. */
type EmbeddedRoots = { text: string; origin: string; savedAt: string };

/** The trust roots inside the page, if it is a file of its own. */
export function findEmbeddedRoots(): EmbeddedRoots | undefined {
  const element = document.querySelector<HTMLElement>('#trust-roots');
  if (element === null) return undefined;
  const { origin = '', savedAt = '' } = element.dataset;
  return { text: element.textContent ?? '', origin, savedAt };
}

/** The submission whose certificate the address asks for, if it does. */
export function findCertificateId(): string | undefined {
  return CERTIFICATE.exec(location.pathname)?.[1];
}

/** A URL below the verification address. */
export function urlBelow(path: string): URL {
  const up = findCertificateId() === undefined ? './' : '../';
  return new URL(`${up}${path}`, location.href.replace(/[?#].*$/, ''));
}
