/**
 * Number of members of all objects in a JSON value. A text with more colons outside its strings has a member twice, of which
 * another reader might take the other one.
 */
export function countMembers(root: unknown): number {
  let count = 0;
  for (const open = [root]; open.length > 0; ) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    const items = Object.values(value);
    if (!Array.isArray(value)) count += items.length;
    for (const item of items) open.push(item);
  }
  return count;
}
