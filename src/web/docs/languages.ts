import { readStored, store } from './theme.ts';

const KEY = 'attestation-docs-language';

/** Shows examples in the language that the reader chose last. */
export function rememberLanguage(): void {
  const choices = [...document.querySelectorAll<HTMLInputElement>('input[name="language"]')];
  const known = choices.find(({ value }) => value === readStored(KEY));
  if (known) known.checked = true;
  for (const choice of choices) choice.addEventListener('change', () => store(KEY, choice.value));
}
