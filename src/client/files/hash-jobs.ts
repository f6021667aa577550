/** Which files are hashed next: jobs of neighbouring files, and what threads gave back of theirs. */

/** Files from `from` to before `to`, by their places. */
type Job = { readonly from: number; readonly to: number };

type Jobs = {
  /** Takes the next job; `taken` results were taken. Undefined if there is none, or the threads are too far ahead. */
  take(taken: number): Job | undefined;
  /** Ends the job that begins with a file. What is left after `done` files comes again, in halves. */
  end(from: number, done: number): void;
};

/** Divides so many files into jobs of at most `jobFiles`, which begin at most `maxAhead` files after the last one taken. */
export function divideFiles(
  count: number,
  { jobFiles, maxAhead }: { jobFiles: number; maxAhead: number },
): Jobs {
  const returned: Job[] = [];
  // Where the jobs under way end, by where they begin.
  const ends = new Map<number, number>();
  let begun = 0;
  const begin = (job: Job) => {
    ends.set(job.from, job.to);
    return job;
  };
  return {
    take: (taken) => {
      const again = returned.shift();
      if (again !== undefined) return begin(again);
      if (begun === count || begun >= taken + maxAhead) return undefined;
      const from = begun;
      begun = Math.min(from + jobFiles, count);
      return begin({ from, to: begun });
    },
    end: (from, done) => {
      const to = ends.get(from) ?? from;
      ends.delete(from);
      const middle = Math.ceil((from + done + to) / 2);
      const halves = [
        { from: from + done, to: middle },
        { from: middle, to },
      ];
      returned.push(...halves.filter((half) => half.from < half.to));
      returned.sort((a, b) => a.from - b.from);
    },
  };
}
