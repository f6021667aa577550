import type { ComponentChildren } from 'preact';

/** Those who scroll by keyboard focus it. */
const FOCUSABLE = { tabIndex: 0 };

/** A region that scrolls in itself. */
export function Scrollable({
  label,
  class: name,
  children,
}: {
  label: string;
  class: string;
  children: ComponentChildren;
}) {
  return (
    <section class={name} aria-label={label} {...FOCUSABLE}>
      {children}
    </section>
  );
}
