// A timer for who waits for a sign of life from elsewhere: it counts only the time in which its own thread could have seen
// one. A machine that slept, a frozen tab or a page that was busy delays one tick and not the count of them, so that what came
// meanwhile is looked at before the patience ends.

/** What a sleep can take from the patience is one part of so many. */
const TICKS = 40;

/**
 * Calls `done` after `ms` of waking time, at the earliest.
 * @returns ends it
 */
export function afterWakingTime(ms: number, done: () => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  const tick = (left: number) => {
    timer = setTimeout(() => (left > 1 ? tick(left - 1) : done()), ms / TICKS);
  };
  tick(TICKS);
  return () => clearTimeout(timer);
}
