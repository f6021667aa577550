/** A page as screen readers get it: Chromium's accessibility tree. */
import type { Page } from 'playwright-core';

type Value = { value?: unknown };
type AxNode = {
  nodeId: string;
  parentId?: string;
  childIds?: string[];
  ignored: boolean;
  role?: Value;
  name?: Value;
  properties?: { name: string; value: Value }[];
};

/** Roles that people act on. */
const ACTED_ON = new Set([
  ...[
    'button',
    'link',
    'textbox',
    'searchbox',
    'checkbox',
    'radio',
    'combobox',
    'listbox',
    'option',
    'switch',
  ],
  ...['tab', 'menuitem', 'slider', 'spinbutton', 'DisclosureTriangle', 'Date', 'DateTime', 'InputTime'],
]);
/** Roles that say nothing of what has the focus. */
const NOTHING = new Set(['generic', 'none', 'presentation', 'InlineTextBox', 'StaticText', 'paragraph']);
const CONTAINERS = new Set([
  'dialog',
  'alertdialog',
  'table',
  'region',
  'feed',
  'navigation',
  'img',
  'image',
]);

/**
 * What a screen reader could not say of the page, a line each: controls without role or name, containers without name,
 * tables without headers, headings that skip a level.
 */
export async function findUnspoken(page: Page): Promise<string[]> {
  const tree = await readTree(page);
  const nodes = tree.filter(({ ignored }) => !ignored);
  return [
    ...nodes.filter(isNameless).map((node) => `a ${roleOf(node)} without name`),
    ...nodes.filter(isRoleless).map((node) => `the focus reaches a ${roleOf(node)} ${nameOf(node)}`),
    ...nodes
      .filter((node) => roleOf(node) === 'table' && !hasHeaders(node, tree))
      .map((node) => `the table ${nameOf(node)} without headers`),
    ...skippedHeadings(nodes),
  ];
}

/** What live regions say now. */
export async function readAnnouncements(page: Page): Promise<string[]> {
  return page.evaluate(
    `[...document.querySelectorAll('[role=status], [role=alert], [aria-live]')].map((e) => e.textContent.trim()).filter(Boolean)`,
  );
}

async function readTree(page: Page): Promise<AxNode[]> {
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send('Accessibility.getFullAXTree');
  await session.detach();
  return inOrder(nodes as AxNode[]);
}

/** The nodes as they are read: the tree comes level by level. */
function inOrder(nodes: readonly AxNode[]): AxNode[] {
  const byId = new Map(nodes.map((node) => [node.nodeId, node]));
  const below = (node: AxNode): AxNode[] => [
    node,
    ...(node.childIds ?? []).flatMap((id) => {
      const child = byId.get(id);
      return child === undefined ? [] : below(child);
    }),
  ];
  return nodes.filter(({ parentId }) => parentId === undefined).flatMap(below);
}

const roleOf = ({ role }: AxNode) => String(role?.value ?? '');
const nameOf = ({ name }: AxNode) => String(name?.value ?? '').trim();
const propertyOf = ({ properties = [] }: AxNode, name: string) =>
  properties.find((property) => property.name === name)?.value.value;

function isNameless(node: AxNode): boolean {
  return (ACTED_ON.has(roleOf(node)) || CONTAINERS.has(roleOf(node))) && nameOf(node) === '';
}

function isRoleless(node: AxNode): boolean {
  return propertyOf(node, 'focusable') === true && NOTHING.has(roleOf(node));
}

function hasHeaders(table: AxNode, nodes: readonly AxNode[]): boolean {
  const parents = new Map(nodes.map((node) => [node.nodeId, node.parentId]));
  const isInside = (node: AxNode) => {
    let id: string | undefined = node.nodeId;
    while (id !== undefined && id !== table.nodeId) id = parents.get(id);
    return id !== undefined;
  };
  return nodes.some((node) => roleOf(node) === 'columnheader' && nameOf(node) !== '' && isInside(node));
}

/** A dialog's own headings begin below the page's, which it hides. */
function skippedHeadings(nodes: readonly AxNode[]): string[] {
  const headings = nodes.filter((node) => roleOf(node) === 'heading');
  const isDialog = nodes.some((node) => roleOf(node).endsWith('dialog'));
  let level = isDialog ? 1 : 0;
  return headings.flatMap((heading) => {
    const next = Number(propertyOf(heading, 'level'));
    const isSkipped = next > level + 1;
    level = next;
    return isSkipped ? [`the heading ${nameOf(heading)} skips a level`] : [];
  });
}
