import { Button as AriaButton, type ButtonProps } from 'react-aria-components';

type Props = Omit<ButtonProps, 'className'> & { isPrimary?: boolean; isDanger?: boolean; isQuiet?: boolean };

/** A button, of which a view has one primary at most. */
export function Button({ isPrimary, isDanger, isQuiet, ...props }: Props) {
  const kind = (isPrimary && 'primary') || (isDanger && 'danger') || (isQuiet && 'quiet') || '';
  return <AriaButton {...props} className={`button ${kind}`} />;
}
