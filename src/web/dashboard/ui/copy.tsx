import { useState } from 'react';
import { Button } from './button.js';

/** A text to take away, with a button that copies it. */
export function Copyable({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(text);
    setCopied(true);
  };
  return (
    <div className="copyable">
      <output aria-label={label}>{text}</output>
      <Button onPress={() => void copy()} aria-label={`Copy ${label}`}>
        {isCopied ? 'Copied' : 'Copy'}
      </Button>
    </div>
  );
}
