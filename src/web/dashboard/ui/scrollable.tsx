import type { ReactNode } from 'react';

/** Those who scroll by keyboard focus it. */
const FOCUSABLE = { tabIndex: 0 };

/** A region that scrolls in itself. */
export function Scrollable({
  label,
  className,
  children,
}: {
  label: string;
  className: string;
  children: ReactNode;
}) {
  return (
    <section className={className} aria-label={label} {...FOCUSABLE}>
      {children}
    </section>
  );
}
