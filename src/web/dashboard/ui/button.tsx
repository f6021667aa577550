import type { ButtonHTMLAttributes } from 'preact';

type Props = ButtonHTMLAttributes & { isPrimary?: boolean; isDanger?: boolean; isQuiet?: boolean };

/** A button, of which a view has one primary at most. */
export function Button({ isPrimary, isDanger, isQuiet, type = 'button', ...props }: Props) {
  const kind = (isPrimary && 'primary') || (isDanger && 'danger') || (isQuiet && 'quiet') || '';
  return <button {...props} type={type} class={`button ${kind}`} />;
}
