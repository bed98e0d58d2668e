// Series of different times on one axis, with holes found by each series' own cadence.

const HOLE_CADENCES = 2.5;

/** The median time between neighbours, in seconds. At least `step`. */
function cadenceOf(times, step) {
  const between = times.slice(1).map((time, row) => time - times[row]).sort((a, b) => a - b);
  return Math.max(between[(between.length - 1) >> 1] ?? step, step);
}

/** Rows of a line with a value, its holes, and the rows that no line can reach. */
function partsOf({ times, values, step }) {
  const rows = times.map((_, row) => row).filter((row) => values[row] !== null);
  const hole = HOLE_CADENCES * cadenceOf(rows.map((row) => times[row]), step);
  const ends = (a, b) => a === undefined || b === undefined || times[b] - times[a] > hole;
  const holes = rows.slice(1).flatMap((row, at) => (ends(rows[at], row) ? [[times[rows[at]], times[row]]] : []));
  const lone = rows.filter((row, at) => ends(rows[at - 1], row) && ends(row, rows[at + 1]));
  return { rows, holes, lone: lone.map((row) => times[row]) };
}

/**
 * Puts lines on one axis. A line has ascending `times` in seconds, `values`, and its `step`, the
 * shortest time between two values; `low` and `high` bound its band. Returns the common `times`,
 * and for each line its columns and `lone`, the rows of its lone values. A column has `undefined`
 * at the time of another line, and `null` in a hole: more than 2.5 times the line's cadence.
 * Example: values at 0, 60, 120 and 600 s have a hole from 120 to 600 s, and a lone value at 600 s.
 */
export function aligned(lines) {
  const parts = lines.map(partsOf);
  const all = new Set();
  parts.forEach(({ rows, holes }, at) => {
    rows.forEach((row) => all.add(lines[at].times[row]));
    holes.forEach(([from, to]) => all.add((from + to) / 2));
  });
  const times = [...all].sort((a, b) => a - b);
  const rowOf = new Map(times.map((time, row) => [time, row]));
  const columns = lines.map((line, at) => {
    const { rows, holes, lone } = parts[at];
    const of = (values) => {
      const column = new Array(times.length);
      for (const row of rows) column[rowOf.get(line.times[row])] = values[row];
      for (const [from, to] of holes) column.fill(null, rowOf.get(from) + 1, rowOf.get(to));
      return column;
    };
    return { values: of(line.values), low: line.low && of(line.low), high: line.high && of(line.high),
      lone: lone.map((time) => rowOf.get(time)) };
  });
  return { times, columns };
}

/** Puts nulls into every column of a row that has a null in one column. */
export function togetherOrNot(columns) {
  const whole = (row) => columns.every((column) => (column[row] ?? null) !== null);
  return columns.map((column) => column.map((value, row) => (whole(row) ? value : null)));
}
