import { fileURLToPath } from 'node:url';
import { completeBuild } from './assets.js';

completeBuild(fileURLToPath(new URL('../..', import.meta.url)));
