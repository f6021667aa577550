import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { ComponentChildren } from 'preact';
import type { Tone } from '../ui/status.js';
import { Time } from '../ui/time.js';

type StepProps = { tone: Tone; title: string; at?: Timestamp | undefined; children: ComponentChildren };

/** One step of the timeline. */
export function Step({ tone, title, at, children }: StepProps) {
  return (
    <li class={tone}>
      <div>
        <div class="row">
          <h3>{title}</h3>
          {at === undefined ? null : (
            <span class="hint">
              <Time at={at} />
            </span>
          )}
        </div>
        <p>{children}</p>
      </div>
    </li>
  );
}
