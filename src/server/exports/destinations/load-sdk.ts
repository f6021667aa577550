import { DestinationError } from './destination.js';

/** Loads an optional package. Rejects with `DestinationError` if it is not installed. */
export async function loadSdk<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (Object(error).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new DestinationError(
      `this service lacks a package for this kind of destination; its operator must run: npm install ${name}`,
    );
  }
}
