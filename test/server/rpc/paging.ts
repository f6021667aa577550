/** Lists page by page. */
import type { JsonObject } from '@bufbuild/protobuf';

/** The ids of a list, from the first page to the last; `readPage` gets the cursor. */
export async function idsOfPages(
  readPage: (cursor: string) => Promise<{ response: JsonObject }>,
): Promise<string[]> {
  const ids: string[] = [];
  let cursor = '';
  do {
    const { response } = await readPage(cursor);
    ids.push(...((response.data ?? []) as { id: string }[]).map(({ id }) => id));
    cursor = String(response.nextCursor ?? '');
  } while (cursor !== '');
  return ids;
}
