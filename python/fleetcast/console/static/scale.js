// Labels of the axes: numbers with the prefix that fits, and times in UTC.

const PREFIXES = [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""],
  [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
const DIGITS_MAX = 6;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/** A number of a clock, with two digits. */
export const two = (number) => String(number).padStart(2, "0");

/** The prefix for a size: from 10,000 on, and below 0.01. Example: 4.2e9 has `[1e9, "G"]`. */
export function prefixOf(size) {
  if (size === 0 || (size >= 0.01 && size < 1e4)) return [1, ""];
  return PREFIXES.find(([unit]) => size >= unit) ?? PREFIXES.at(-1);
}

/** The labels of round values, all with one prefix. */
export function valueLabels(values) {
  const size = Math.max(...values.map(Math.abs), 0);
  const [unit, prefix] = prefixOf(size);
  const step = values.length > 1 ? (values[1] - values[0]) / unit : 1;
  let digits = 0; // as many as tell a step of 0.25 from 0.3
  while (digits < DIGITS_MAX && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > step * 10 ** digits * 1e-6) digits += 1;
  return values.map((value) => (value === 0 ? "0" : (value / unit).toFixed(digits) + prefix));
}

/** The labels of round times, `step` seconds apart. A second line has the day, once a day. */
export function timeLabels(times, step) {
  let last = null;
  return times.map((time) => {
    const at = new Date(time * 1000);
    const day = `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`;
    if (step >= 86400) return day;
    const seconds = step < 60 ? `:${two(at.getUTCSeconds())}` : "";
    const clock = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}${seconds}`;
    const begins = day !== last;
    last = day;
    return begins ? `${clock}\n${day}` : clock;
  });
}
