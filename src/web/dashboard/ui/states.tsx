import type { ComponentChildren } from 'preact';
import { describeError } from '../errors.js';
import { Button } from './button.js';
import { safe } from './safe.js';

/** What shows while something loads. */
export function Loading({ what }: { what: string }) {
  return (
    <p class="state" role="status">
      <span class="spinner" aria-hidden="true" /> Loading {what}…
    </p>
  );
}

/** What shows where there is nothing, with what to do about it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state empty" role="status">
      <h2>{title}</h2>
      <p>{children}</p>
    </div>
  );
}

/** What shows in the place of something that failed. */
export function ErrorState({ error, onRetry }: { error: unknown; onRetry?: () => unknown }) {
  const { message, code, requestId } = describeError(error);
  return (
    <div class="state error" role="alert">
      <p>{safe(message)}</p>
      {code === '' ? null : (
        <p class="hint">
          <code>{code}</code> {requestId === '' ? null : <code>{requestId}</code>}
        </p>
      )}
      {onRetry === undefined ? null : <Button onClick={() => void onRetry()}>Try again</Button>}
    </div>
  );
}
