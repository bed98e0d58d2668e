// Holes in a series, so that nothing is drawn across one.

/**
 * Times and columns with a row of nulls wherever two times are further apart than a step and a
 * half: a line or a band ends there and begins anew behind it.
 */
export function withGaps(times, columns, step) {
  const found = { times: [], columns: columns.map(() => []) };
  times.forEach((time, row) => {
    if (row > 0 && time - times[row - 1] > 1.5 * step) {
      found.times.push(times[row - 1] + step);
      found.columns.forEach((column) => column.push(null));
    }
    found.times.push(time);
    found.columns.forEach((column, index) => column.push(columns[index][row] ?? null));
  });
  return found;
}

/** Columns in which a row with a null in one of some has nulls in all of them. */
export function togetherOrNot(columns) {
  const whole = (row) => columns.every((column) => column[row] !== null && column[row] !== undefined);
  return columns.map((column) => column.map((value, row) => (whole(row) ? value : null)));
}
