import type { Exports } from '../exports/ship/export-stage.js';
import type { LogStages } from '../log/log-stages.js';
import type { Webhooks } from '../webhooks/delivery/webhook-stage.js';
import type { WitnessStage } from '../witnessing/witness-stage.js';

/** The dependencies of all stages. */
export type Pipeline = Omit<LogStages, 'witnesses'> &
  WitnessStage & {
    /** Throws while no commit is confirmed, before a job begins. */
    assertCommits: () => void;
    webhooks: Webhooks;
    exports: Exports;
  };
