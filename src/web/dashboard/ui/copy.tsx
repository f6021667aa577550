import { useRef, useState } from 'preact/hooks';
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
    <div class="copyable">
      <output aria-label={label} ref={output}>
        {text}
      </output>
      <Button onClick={() => void copy()} aria-label={`${word} ${label}`}>
        {word}
      </Button>
      <span class="sr" role="status">
        {word === 'Copy' ? '' : `${word} ${label}`}
      </span>
    </div>
  );
}
