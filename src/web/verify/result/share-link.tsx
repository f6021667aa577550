import { useEffect, useState } from 'preact/hooks';
import { bundleFragment } from '../inputs/bundle-link.js';
import { findEmbeddedRoots } from '../place.js';
import type { Result } from './use-verification.js';

/** The proof as a link, for bundles that are well-formed and small enough; and the report on paper. */
export function ShareLink({ result }: { result: Result }) {
  const fragment = useFragment(result);
  const [copied, setCopied] = useState<string>();
  const isServed = findEmbeddedRoots() === undefined;
  const link =
    isServed && fragment !== undefined ? `${location.href.replace(/#.*$/, '')}${fragment}` : undefined;
  const copy = async (text: string) => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied('The link is copied. To check it, the recipient needs the file as well.');
    } catch {
      setCopied('The browser did not allow copying: copy the address of the link instead.');
    }
  };
  return (
    <div class="share">
      {link !== undefined && (
        <>
          <button type="button" onClick={() => copy(link)}>
            Copy a link with this proof
          </button>
          <a href={link}>Open the link</a>
        </>
      )}
      <button type="button" class="plain" onClick={() => print()}>
        Print this report
      </button>
      <p role="status" class="quiet copied">
        {copied}
      </p>
    </div>
  );
}

function useFragment({ bundle, parsed }: Result): string | undefined {
  const [fragment, setFragment] = useState<string>();
  useEffect(() => {
    let isCurrent = true;
    setFragment(undefined);
    if (parsed !== undefined) bundleFragment(bundle.bytes).then((text) => isCurrent && setFragment(text));
    return () => {
      isCurrent = false;
    };
  }, [bundle, parsed]);
  return fragment;
}
