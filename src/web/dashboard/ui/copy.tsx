import { useRef, useState } from 'react';
import { Button } from './button.js';

/** A text to take away, with a button that copies it, or selects it where the browser lets no page copy. */
export function Copyable({ text, label }: { text: string; label: string }) {
  const output = useRef<HTMLOutputElement>(null);
  const [word, setWord] = useState('Copy');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setWord('Copied');
    } catch {
      if (output.current !== null) getSelection()?.selectAllChildren(output.current);
      setWord('Selected');
    }
  };
  return (
    <div className="copyable">
      <output aria-label={label} ref={output}>
        {text}
      </output>
      <Button onPress={() => void copy()} aria-label={`${word} ${label}`}>
        {word}
      </Button>
      <span className="sr" role="status">
        {word === 'Copy' ? '' : `${word} ${label}`}
      </span>
    </div>
  );
}
