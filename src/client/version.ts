/** The version of the library, as package.json has it. */
export const VERSION = '0.2.0';
