import { button, tools } from './tools.ts';

const KEY = 'attestation-docs-theme';
const THEMES = ['system', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];

function chosen(): Theme {
  const stored = readStored(KEY);
  return THEMES.find((theme) => theme === stored) ?? 'system';
}

/** Reads what the browser keeps for this site; a browser may keep nothing. */
export function readStored(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Keeps a choice in the browser, where it lets sites keep something. */
export function store(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // The choice is then for this page.
  }
}

/** Shows the page in the theme that the reader chose. */
export function applyTheme(theme = chosen()): void {
  document.documentElement.dataset.theme = theme;
}

/** Adds the button that goes through the themes: that of the system, light, dark. */
export function addThemeButton(): void {
  const element = button('', () => {
    const next = THEMES[(THEMES.indexOf(chosen()) + 1) % THEMES.length] ?? 'system';
    store(KEY, next);
    applyTheme(next);
    label(next);
  });
  const label = (theme: Theme) => {
    element.textContent = `Theme: ${theme}`;
  };
  label(chosen());
  tools().append(element);
}
