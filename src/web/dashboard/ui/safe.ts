import { printable } from '../../../protocol/printable.js';

/** A text of somebody else's, with the characters replaced that could make other text look different. */
export function safe(text: string): string {
  return printable(text);
}

/** JSON of somebody else's on lines of its own, made safe line by line. */
export function safeJson(value: unknown): string {
  return (JSON.stringify(value, undefined, 2) ?? '').split('\n').map(safe).join('\n');
}
