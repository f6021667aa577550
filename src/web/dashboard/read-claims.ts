/** The conditions that are typed in, `name=pattern` on each line. */
export function readClaims(text: string): Record<string, string> {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return Object.fromEntries(
    lines.map((line) => {
      const [name = '', ...rest] = line.split('=');
      return [name.trim(), rest.join('=').trim()];
    }),
  );
}
