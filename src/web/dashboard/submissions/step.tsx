import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { ReactNode } from 'react';
import type { Tone } from '../ui/status.js';
import { Time } from '../ui/time.js';

type StepProps = { tone: Tone; title: string; at?: Timestamp | undefined; children: ReactNode };

/** One step of the timeline. */
export function Step({ tone, title, at, children }: StepProps) {
  return (
    <li className={tone}>
      <div>
        <div className="row">
          <h3>{title}</h3>
          {at === undefined ? null : (
            <span className="hint">
              <Time at={at} />
            </span>
          )}
        </div>
        <p>{children}</p>
      </div>
    </li>
  );
}
