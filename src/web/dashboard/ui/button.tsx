import type { DescMethod } from '@bufbuild/protobuf';
import type { ButtonHTMLAttributes } from 'preact';
import { useMay } from '../scope.js';

type PlainProps = ButtonHTMLAttributes & { isPrimary?: boolean; isDanger?: boolean; isQuiet?: boolean };
type Props = PlainProps & {
  /** The RPC that it leads to: there is no button for whom its rules keep from calling it. */
  calls?: DescMethod;
};

/** A button, of which a view has one primary at most. */
export function Button({ calls, ...props }: Props) {
  return calls === undefined ? <Plain {...props} /> : <Guarded calls={calls} {...props} />;
}

function Guarded({ calls, ...props }: PlainProps & { calls: DescMethod }) {
  return useMay()(calls) ? <Plain {...props} /> : null;
}

function Plain({ isPrimary, isDanger, isQuiet, type = 'button', ...props }: PlainProps) {
  const kind = (isPrimary && 'primary') || (isDanger && 'danger') || (isQuiet && 'quiet') || '';
  return <button {...props} type={type} class={`button ${kind}`} />;
}
