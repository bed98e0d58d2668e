// Repeated refreshes of the open view, only while the page is visible. After each failure the next
// refresh comes later. The page says when its values are old.

const LONGEST_SECONDS = 60;

/**
 * Runs `refresh(signal)` every `every()` seconds until `stop`; with `Infinity` only when asked. After
 * each turn it calls `state` with `{at, error, due, seconds}`: the time of the newest answer, the
 * error since then, the next refresh, the seconds between two refreshes.
 */
export function poll(refresh, every, state) {
  let timer = 0;
  let failures = 0;
  let at = null;
  let stopped = false;
  let asking = null;

  async function turn() {
    clearTimeout(timer);
    asking?.abort();
    const mine = (asking = new AbortController());
    let error = null;
    try {
      await refresh(mine.signal);
      at = Date.now();
      failures = 0;
    } catch (raised) {
      if (raised.name === "AbortError") return;
      error = raised;
      failures += 1;
    }
    if (stopped || mine !== asking) return;
    const seconds = every();
    const wait = Math.min(seconds * 2 ** failures, LONGEST_SECONDS);
    const delay = Math.max(error?.retryAfter ?? 0, error ? wait : seconds);
    state({ at, error, due: Date.now() + delay * 1000, seconds });
    if (!document.hidden && delay < Infinity) timer = setTimeout(turn, delay * 1000);
  }

  const looked = () => {
    clearTimeout(timer);
    if (!document.hidden) turn();
  };
  document.addEventListener("visibilitychange", looked);
  turn();
  return {
    now: turn,
    stop() {
      stopped = true;
      clearTimeout(timer);
      asking?.abort();
      document.removeEventListener("visibilitychange", looked);
    },
  };
}
