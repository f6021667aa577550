/** Leads links into the reference as one page, `/docs#createWebhook`, on to the page of the operation. */
export function followOldAnchor({ pathname, hash }: Location): void {
  if (pathname !== '/docs' || document.getElementById(hash.slice(1)) !== null) return;
  if (/^#(?:tag|header)-|^#headers$/.test(hash)) location.replace(`/docs/api${hash}`);
  else if (/^#schema/.test(hash)) location.replace(`/docs/api/schemas${hash}`);
  else if (/^#[a-z]+[A-Z]\w*$/.test(hash)) location.replace(`/docs/api/${hash.slice(1)}`);
}
