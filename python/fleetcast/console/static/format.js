// Numbers, sizes and times as people read them. The caller shows the unit.

import { prefixOf, two } from "./scale.js";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const places = [0, 1, 2, 3].map((digits) => new Intl.NumberFormat("en", {
  minimumFractionDigits: digits, maximumFractionDigits: digits,
}));
const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];
export const NOTHING = "–";

/** A count, with its thousands apart. */
export const count = (value) => (value === null || value === undefined ? NOTHING : whole.format(value));

/** A rate or a figure of three digits. */
export function figure(value) {
  if (value === null || value === undefined) return NOTHING;
  const size = Math.abs(value);
  if (size === 0 || size >= 100) return whole.format(value);
  return places[size >= 10 ? 1 : 2].format(value);
}

/** A stored value of any type, no longer than a cell. */
export function value(of) {
  if (typeof of !== "number") return String(of);
  if (Number.isInteger(of)) return Math.abs(of) < 1e15 ? whole.format(of) : of.toExponential(3);
  const size = Math.abs(of);
  return size >= 1e9 || size < 1e-3 ? of.toExponential(3) : Number(of.toPrecision(6)).toString();
}

/** A number in about four digits, with the prefix that fits, for words next to a chart. */
export function compact(of) {
  const [unit, prefix] = prefixOf(Math.abs(of));
  return `${value(Number((of / unit).toPrecision(4)))}${prefix}`;
}

export function bytes(of) {
  if (of === null || of === undefined) return NOTHING;
  let unit = 0;
  let rest = of;
  while (rest >= 999.5 && unit < UNITS.length - 1) {
    rest /= 1000;
    unit += 1;
  }
  return `${unit ? figure(rest) : whole.format(rest)} ${UNITS[unit]}`;
}

/** A time in UTC, of seconds since 1970; today's times have no day. */
export function moment(seconds) {
  if (seconds === null || seconds === undefined) return NOTHING;
  const at = new Date(seconds * 1000);
  const clock = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}`;
  const day = at.toISOString().slice(0, 10);
  return day === new Date().toISOString().slice(0, 10) ? `${clock} UTC` : `${day} ${clock} UTC`;
}

/** A length of time in whole minutes, or in hours. */
export const minutes = (of) => (of < 60 ? `${of} min` : `${of / 60} h`);

/** A span of time in its two largest units. */
export function span(seconds) {
  if (seconds === null || seconds === undefined) return NOTHING;
  const of = Math.max(Math.round(seconds), 0);
  if (of < 60) return `${of} s`;
  if (of < 3600) return `${Math.floor(of / 60)} min ${two(of % 60)} s`;
  if (of < 86400) return `${Math.floor(of / 3600)} h ${two(Math.floor((of % 3600) / 60))} min`;
  return `${Math.floor(of / 86400)} d ${Math.floor((of % 86400) / 3600)} h`;
}

/** The time since a past moment, or until a future moment. */
export function age(seconds) {
  const ago = Date.now() / 1000 - seconds;
  return ago < -1 ? `${span(-ago)} ahead` : `${span(ago)} ago`;
}
