/** Drives the verify page as its readers do. */
import { deflateRawSync } from 'node:zlib';
import type { Page } from 'playwright-core';

/** A file to be given to the page. */
type Given = { name: string; content: Uint8Array | object };

/** How the page shows a step. */
type ShownStep = { name: string; status: string; word: string };

/** Gives a file through the button with this label. */
export async function choose(page: Page, label: string, { name, content }: Given): Promise<void> {
  await page
    .getByLabel(label)
    .setInputFiles({ name, mimeType: 'application/octet-stream', buffer: bytesOf(content) });
}

/** Drops files on the page, in the middle of whatever the selector names. */
export async function drop(page: Page, selector: string, files: readonly Given[]): Promise<void> {
  const given = files.map(({ name, content }) => [name, bytesOf(content).toString('base64')]);
  const transfer = await page.evaluateHandle(`(() => {
    const transfer = new DataTransfer();
    for (const [name, content] of ${JSON.stringify(given)}) {
      transfer.items.add(new File([Uint8Array.from(atob(content), (c) => c.charCodeAt(0))], name));
    }
    return transfer;
  })()`);
  for (const type of ['dragover', 'drop'])
    await page.dispatchEvent(selector, type, { dataTransfer: transfer });
}

/** Drops files and folders of the disk at once, as a file manager does, in the middle of what the selector names. */
export async function dropPaths(page: Page, paths: readonly string[], selector = 'h1'): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await page.locator(selector).scrollIntoViewIfNeeded();
  const box = await page.locator(selector).boundingBox();
  const { x, y, width, height } = box ?? { x: 0, y: 0, width: 0, height: 0 };
  const send = (type: 'dragEnter' | 'dragOver' | 'drop') =>
    session.send('Input.dispatchDragEvent', {
      type,
      ...{ x: x + width / 2, y: y + height / 2 },
      data: { items: [], files: [...paths], dragOperationsMask: 1 },
    });
  await send('dragEnter');
  await send('dragOver');
  await page.locator('.dragging').waitFor();
  await send('dragOver');
  await send('drop');
  await session.detach();
}

/** The files of a folder as the page shows them: the line of counts, and the paths of each kind that is listed. */
export async function readFindings(page: Page): Promise<{ counts: string; paths: Record<string, string[]> }> {
  await page.locator('.files').waitFor();
  return page.evaluate(`({
    counts: document.querySelector('.files > .quiet').textContent,
    paths: Object.fromEntries([...document.querySelectorAll('.files .kind')].map((kind) => [
      kind.dataset.kind,
      [...(kind.parentElement.classList.contains('files') ? [] : kind.parentElement.querySelectorAll('li'))]
        .map((item) => item.textContent),
    ])),
  })`);
}

/** Waits for the result of the bundle of this name; returns its headline and the summary. */
export async function readVerdict(
  page: Page,
  bundle: string,
): Promise<{ headline: string | null; summary: string | null }> {
  await page.locator('.basis bdi', { hasText: bundle }).waitFor();
  const headline = await page.locator('.headline').textContent();
  return { headline, summary: await page.locator('.summary').textContent() };
}

/** Replaces the bundle that the page has. */
export async function replaceBundle(page: Page, given: Given): Promise<void> {
  const change = page.locator('[data-takes=bundle]').getByRole('button', { name: 'Change' });
  if ((await change.count()) > 0) await change.click();
  await choose(page, 'Choose the bundle…', given);
}

/** The steps as the page shows them. */
export async function readSteps(page: Page): Promise<ShownStep[]> {
  return page.evaluate<ShownStep[]>(`[...document.querySelectorAll('.steps > li')].map((item) => ({
    name: item.dataset.step,
    status: item.className,
    word: item.querySelector('h3 .chip').textContent,
  }))`);
}

/** Moves the focus forward until the control with this text or label has it. Returns how many controls that took. */
export async function tabTo(page: Page, label: string): Promise<number> {
  for (let presses = 0; presses < MAX_TABS; presses++) {
    if ((await page.evaluate(FOCUSED)) === label) return presses;
    await page.keyboard.press('Tab');
  }
  throw new Error(`${label} is not reached with the keyboard`);
}

const MAX_TABS = 40;
const FOCUSED =
  '(({ labels, textContent }) => (labels?.[0] ?? { textContent }).textContent)(document.activeElement)';

/** Fragments that carry nothing that can be read, each with what the page says. */
export function hostileFragments(bundle: Uint8Array): [fragment: string, reason: string][] {
  const encode = (bytes: Uint8Array | string) => `#bundle=${deflateRawSync(bytes).toString('base64url')}`;
  return [
    ['#bundle=', 'carries no proof bundle'],
    [encode(bundle).slice(0, -40), 'damaged or cut off'],
    ['#javascript:alert(1)', 'carries no proof bundle'],
    [encode(Buffer.alloc(20_000_000)), 'carries more than 1 MiB'],
    ['#bundle=AAAA', 'damaged or cut off'],
    [`#bundle=${'A'.repeat(300_000)}`, 'the link is too long'],
    ['#id=sub_1', 'A submission ID is sub_'],
    [encode('<script>alert(1)</script>'), 'is not JSON, or is cut off'],
  ];
}

function bytesOf(content: Given['content']): Buffer {
  return content instanceof Uint8Array ? Buffer.from(content) : Buffer.from(JSON.stringify(content));
}
