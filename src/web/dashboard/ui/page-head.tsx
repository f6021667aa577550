import { type ReactNode, useEffect } from 'react';

/** The heading of a page, with what can be done there; names the page in the window's title, too. */
export function PageHead({
  title,
  hint,
  children,
}: {
  title: string;
  hint?: ReactNode;
  children?: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · Attestation service`;
  }, [title]);
  return (
    <header className="head">
      <div>
        <h1>{title}</h1>
        {hint === undefined ? null : <p>{hint}</p>}
      </div>
      {children}
    </header>
  );
}
