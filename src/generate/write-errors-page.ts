/** The second part of `npm run generate`: the page about errors, from code that the first part has made. */
import { writeFileSync } from 'node:fs';
import { ERRORS_PAGE, errorsPage } from './errors-page.js';

writeFileSync(new URL(`../../${ERRORS_PAGE}`, import.meta.url), errorsPage());
