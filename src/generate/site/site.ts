import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DescMethod, JsonObject } from '@bufbuild/protobuf';
import { BASE_URL } from '../../server/web/docs/addresses.js';
import { addressed, type GuidePage, guidePages } from './guide-pages.js';
import { listGuides } from './guides.js';
import { layOut, type NavGroup } from './layout.js';
import type { OpenApi } from './reference/openapi.js';
import { groupsOf } from './reference/overview.js';
import { referencePages } from './reference/pages.js';
import { searchIndex } from './search-index.js';

/** The audience before whose pages the reference is. */
const BEFORE = 'Change';

/** What the site is made of: the repository, the document that Vite built, and the RPCs by their names. */
type Sources = { root: string; shell: string; rpcs: ReadonlyMap<string, DescMethod> };

/** The files of the site: pages by their address with `.html` behind, and the index of the search. */
export function renderSite({ root, shell, rpcs }: Sources): Map<string, string> {
  const text = readFileSync(join(root, 'gen/openapi/openapi.json'), 'utf8');
  const generated = JSON.parse(addressed(text)) as JsonObject;
  const document = { ...generated, servers: [{ url: BASE_URL }] } as unknown as OpenApi;
  const guides = guidePages(root, listGuides(root));
  const reference = referencePages(document, rpcs);
  const nav = navigation(guides, document);
  const pages = [...guides.map(({ page }) => page), ...reference];
  const files = new Map(pages.map((page) => [`${page.url.slice(1)}.html`, layOut(shell, page, nav)]));
  return files.set('docs/search.json', searchIndex(pages));
}

function navigation(guides: readonly GuidePage[], document: OpenApi): NavGroup[] {
  const titles = [...new Set(guides.map(({ audience }) => audience))];
  const groups = titles.map((title) => ({
    title,
    pages: guides.filter(({ audience }) => audience === title).map(({ page }) => page),
    folds: [],
  }));
  const at = titles.indexOf(BEFORE);
  return [...groups.slice(0, at), referenceGroup(document), ...groups.slice(at)];
}

function referenceGroup(document: OpenApi): NavGroup {
  return {
    title: 'Reference',
    pages: [
      { url: '/docs/api', title: 'API reference' },
      { url: '/docs/api/schemas', title: 'Schemas' },
    ],
    folds: groupsOf(document).map(({ name, places }) => ({
      title: name,
      url: `/docs/api#tag-${name}`,
      pages: places.map(({ operation }) => ({
        url: `/docs/api/${operation.operationId}`,
        title: operation.summary,
      })),
    })),
  };
}
