import { provide } from './provide.js';

/** The XML parser and validator of libxml2. A test that imports this is skipped where it cannot be had. */
export const XMLLINT = await provide('xmllint');
