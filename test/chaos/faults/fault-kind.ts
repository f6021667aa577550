import type { SceneName } from '../options.js';
import type { Scene } from '../scene/scene.js';

/** A kind of fault: what it does to whom, and what ends it. */
export type FaultKind = {
  name: string;
  /** Whom it may be done to; more than one name, joined by +, for all at once. */
  targets: readonly string[];
  /** How long it lasts, in ms. */
  durationMs: readonly [least: number, most: number];
  /** Only in this scene. */
  scene?: SceneName;
  /** Only where file systems can be mounted. */
  needsDisks?: true;
  /** Only where Postgres has a standby. */
  needsStandby?: true;
  /** @returns what ends it; to be called once */
  begin(scene: Scene, target: string): Promise<() => Promise<void>>;
};

/** For what is to outlast the time-outs of those it is done to, at times. */
export const LONG = [500, 12_000] as const;
