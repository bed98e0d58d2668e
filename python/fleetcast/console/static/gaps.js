// Holes in a series, so that no line is drawn across a hole.

/**
 * Adds a row of nulls between two times that are more than one and a half steps apart. A line or a
 * band ends at this row and begins again after it.
 * Example: with a step of 10 s, the times 0, 10, 40 get a row of nulls between 10 and 40.
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

/** Puts nulls into every column of a row that has a null in one column. */
export function togetherOrNot(columns) {
  const whole = (row) => columns.every((column) => column[row] !== null && column[row] !== undefined);
  return columns.map((column) => column.map((value, row) => (whole(row) ? value : null)));
}
