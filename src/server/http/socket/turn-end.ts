/** What is sent at the end of a turn of the event loop. */
let queue: (() => void)[] = [];

/**
 * Runs `work`, which must not throw, at the end of the turn of the event loop: connections of HTTP/2 send so, in one write,
 * the frames of all that the turn has made.
 */
export function atTurnEnd(work: () => void): void {
  if (queue.length === 0) setImmediate(endTurn);
  queue.push(work);
}

/** Runs what is queued now. What it queues runs in the same pass. */
function endTurn(): void {
  for (let i = 0; i < queue.length; i++) (queue[i] as () => void)();
  queue = [];
}

/**
 * Creates a queue of responses that are sent at the end of the turn of the event loop in which they were made, one after
 * the other: a write wakes the client's process if it waits, and the next writes find it awake. A cached bundle takes 51 to
 * 58 µs of CPU, one by one 71 to 104 (smallest and middle of four rounds). `send` must not throw.
 */
export function createSendQueue(): (send: () => void) => void {
  let queue: (() => void)[] = [];
  const sendAll = () => {
    const sends = queue;
    queue = [];
    for (const send of sends) send();
    endTurn();
  };
  return (send) => {
    if (queue.length === 0) setImmediate(sendAll);
    queue.push(send);
  };
}
