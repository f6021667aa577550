/**
 * What the pages of the site, which are made before any service runs, have in the place of the service's addresses: the
 * server replaces it. Names under `.invalid` are nobody's.
 */
export const BASE_URL = 'https://base-url.invalid';

/** The same for the address of the verify page and the public log. */
export const VERIFY_URL = 'https://verify-url.invalid';
