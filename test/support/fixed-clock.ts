/** What came of a run that ended in the hour, and so on the day, it began in. */
export async function withinOneHour<T>(run: () => Promise<T>): Promise<T> {
  const hour = () => Math.floor(Date.now() / 3_600_000);
  for (;;) {
    const began = hour();
    const result = await run();
    if (hour() === began) return result;
  }
}
