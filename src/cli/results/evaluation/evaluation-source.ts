/** `attest submit --eval`: the log of an evaluation as a set. */
import type { JsonObject } from '@bufbuild/protobuf';
import { hashArtifact } from '../../../client/hash.js';
import type { PresentFile } from '../../../proof/set/compare-files.js';
import type { Cli } from '../../cli.js';
import { inputFileSize } from '../../input/input-file.js';
import { openProgress, type Progress } from '../../output/progress.js';
import { fieldsOf } from '../log-json.js';
import { withGiven } from '../results-flags.js';
import { hashLog } from './hash-log.js';

/** What a log has for a set; `describe` may be called once `read` has ended. */
type EvaluationSource = {
  readonly path: string;
  readonly read: (asked: { signal: AbortSignal }) => AsyncIterable<PresentFile>;
  readonly describe: (given: JsonObject | undefined) => JsonObject;
};

/** The parts of a log, and its metadata with the hash of the dataset if that is given. Reading throws as hashLog does. */
export function evaluationSource(cli: Cli, log: string, { dataset }: { dataset?: string }): EvaluationSource {
  let metadata: JsonObject = {};
  return {
    path: log,
    read: async function* ({ signal }) {
      if (dataset !== undefined) await inputFileSize(dataset);
      const digest = dataset === undefined ? undefined : { sha256: await hashArtifact(dataset, { signal }) };
      const shown = { output: cli.stderr, now: () => cli.now().getTime() };
      let progress: Progress | undefined;
      const onTotal = (bytes: number) => {
        progress = openProgress(shown, 'hashing', bytes);
      };
      try {
        const hashed = await hashLog(log, { signal, onTotal, onBytes: (bytes) => progress?.add(bytes) });
        metadata =
          digest === undefined
            ? hashed.metadata
            : { ...hashed.metadata, dataset: { ...fieldsOf(hashed.metadata.dataset), digest } };
        yield* hashed.files;
      } finally {
        progress?.clear();
      }
    },
    describe: (given) => withGiven(metadata, given),
  };
}
