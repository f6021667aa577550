import { button, tools } from './tools.ts';

const MAX_RESULTS = 12;

/** Adds the search: a button and the key `/` open it; its index is loaded when it is first opened. */
export function addSearch(): void {
  const dialog = document.createElement('dialog');
  dialog.className = 'search';
  dialog.setAttribute('aria-label', 'Search the documentation');
  const input = document.createElement('input');
  input.type = 'search';
  input.placeholder = 'Search';
  input.setAttribute('aria-label', 'Search');
  const status = document.createElement('p');
  status.setAttribute('role', 'status');
  const results = document.createElement('ul');
  const bar = document.createElement('div');
  bar.className = 'bar';
  bar.append(
    input,
    button('Close', () => dialog.close()),
  );
  dialog.append(bar, status, results);
  document.body.append(dialog);

  const show = async () => {
    const { search } = await import('./search.ts');
    const query = input.value.trim();
    const found = query === '' ? [] : await search(query);
    if (query !== input.value.trim()) return;
    status.textContent = query === '' ? '' : found.length === 1 ? '1 result' : `${found.length} results`;
    results.replaceChildren(...found.slice(0, MAX_RESULTS).map(resultItem));
  };
  const open = () => {
    dialog.showModal();
    input.select();
    void show();
  };
  input.addEventListener('input', () => void show());
  results.addEventListener('click', () => dialog.close());
  dialog.addEventListener('keydown', (event) => moveFocus(event, [input, ...results.querySelectorAll('a')]));
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    event.preventDefault();
    open();
  });
  tools().append(button('Search  /', open));
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement && target.type !== 'radio';
}

/** Arrows go through the results, Enter in the field goes to the first. */
function moveFocus(event: KeyboardEvent, items: readonly HTMLElement[]): void {
  const at = items.indexOf(document.activeElement as HTMLElement);
  if (event.key === 'Enter' && at === 0) items[1]?.click();
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
  const next = items[at + step];
  if (step === 0 || next === undefined) return;
  event.preventDefault();
  next.focus();
}

function resultItem({
  url,
  title,
  page,
  excerpt,
}: {
  url: string;
  title: string;
  page: string;
  excerpt: string;
}) {
  const item = document.createElement('li');
  const link = document.createElement('a');
  link.href = url;
  const name = document.createElement('b');
  name.textContent = title === page ? title : `${page}: ${title}`;
  const text = document.createElement('span');
  text.textContent = excerpt;
  link.append(name, text);
  item.append(link);
  return item;
}
