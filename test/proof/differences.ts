/** JSON pointers to the innermost members that differ. */
export function differences(a: unknown, b: unknown, path = ''): string[] {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null)
    return a === b ? [] : [path];
  const [left, right] = [new Map(Object.entries(a)), new Map(Object.entries(b))];
  const names = new Set([...left.keys(), ...right.keys()]);
  return [...names].flatMap((name) => differences(left.get(name), right.get(name), `${path}/${name}`));
}
