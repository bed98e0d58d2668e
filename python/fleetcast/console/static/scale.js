// Round numbers for the axes of a chart.

const SECONDS = [1, 5, 15, 30, 60, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800,
  604800, 1209600];
const two = (number) => String(number).padStart(2, "0");

/** Returns the multiples of a step from `low` to `high`. */
function multiples(low, high, step) {
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) found.push(at * step);
  return found;
}

/** Returns at most `wanted` round values over a range, and the text of each. */
export function valueTicks(low, high, wanted) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((of) => of * power >= rough) ?? 10);
  const size = Math.max(Math.abs(low), Math.abs(high));
  const [unit, sign] = size >= 1e9 ? [1e9, "G"] : size >= 1e6 ? [1e6, "M"] : size >= 1e4 ? [1e3, "k"] : [1, ""];
  const digits = Math.min(Math.max(-Math.floor(Math.log10(step / unit) + 1e-9), 0), 8);
  return multiples(low, high, step).map((value) => ({ value, text: (value / unit).toFixed(digits) + sign }));
}

/** Returns at most `wanted` round times over a range, in UTC. The first of a day shows the day. */
export function timeTicks(low, high, wanted) {
  const step = SECONDS.find((of) => (high - low) / of <= wanted) ?? SECONDS.at(-1);
  let last = null;
  return multiples(low, high, step).map((value) => {
    const at = new Date(value * 1000);
    const day = `${two(at.getUTCDate())}.${two(at.getUTCMonth() + 1)}.`;
    const clock = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}${step < 60 ? `:${two(at.getUTCSeconds())}` : ""}`;
    const text = step >= 86400 ? day : clock;
    const begins = last !== null && day !== last && step < 86400;
    last = day;
    return { value, text: begins ? day : text };
  });
}

/** Returns a range around all numbers of some columns; `null` if there is no number. */
export function rangeOf(columns) {
  let low = Infinity;
  let high = -Infinity;
  for (const column of columns) {
    for (const value of column) {
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  if (low > high) return null;
  const room = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
  return [low >= 0 && low < room ? 0 : low - room, high + room];
}
