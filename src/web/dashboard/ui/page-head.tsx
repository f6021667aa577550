import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';

/** The heading of a page, with what can be done there; names the page in the window's title, too. */
export function PageHead({
  title,
  hint,
  children,
}: {
  title: string;
  hint?: ComponentChildren;
  children?: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${title} · Attestation service`;
  }, [title]);
  return (
    <header class="head">
      <div>
        <h1>{title}</h1>
        {hint === undefined ? null : <p>{hint}</p>}
      </div>
      {children}
    </header>
  );
}
