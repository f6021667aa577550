import type { App } from '../app/contract.js';

/** Loads the server code, which other commands do without. */
export async function loadApp(): Promise<App> {
  const module = new URL('../app.js', import.meta.url).href;
  return import(module);
}
