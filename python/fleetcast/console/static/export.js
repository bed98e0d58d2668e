// Files of what a page shows: values as CSV or JSON, and charts as one PNG.

const FIRST_OF_FORMULA = /^[=+\-@\t\r]/;
const GAP_PX = 12;
const TITLE_PX = 22;

function save(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A cell. A text that a spreadsheet would run as a formula begins with an apostrophe. */
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = FIRST_OF_FORMULA.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Saves rows as CSV, with `columns` as their first line. */
export function saveCsv(name, columns, rows) {
  const lines = [columns, ...rows].map((row) => row.map(cell).join(","));
  save(`${name}.csv`, new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv" }));
}

/** Saves rows as a JSON array of objects. */
export function saveJson(name, columns, rows) {
  const objects = rows.map((row) => Object.fromEntries(columns.map((column, at) => [column, row[at] ?? null])));
  save(`${name}.json`, new Blob([JSON.stringify(objects)], { type: "application/json" }));
}

/** Saves charts, one below the other, with their titles. */
export function savePng(name, charts) {
  const canvases = charts.map((chart) => chart.plot.querySelector("canvas"));
  const ratio = devicePixelRatio;
  const picture = document.createElement("canvas");
  picture.width = Math.max(...canvases.map((canvas) => canvas.width));
  picture.height = canvases.reduce((sum, canvas) => sum + canvas.height + (TITLE_PX + GAP_PX) * ratio, 0);
  const style = getComputedStyle(document.documentElement);
  const pen = picture.getContext("2d");
  pen.fillStyle = style.getPropertyValue("--sheet");
  pen.fillRect(0, 0, picture.width, picture.height);
  pen.fillStyle = style.getPropertyValue("--text");
  pen.font = `${13 * ratio}px system-ui, sans-serif`;
  let top = 0;
  canvases.forEach((canvas, at) => {
    const chart = charts[at];
    const lines = chart.data.lines.map((line) => line.label).join(", ");
    pen.fillText(`${chart.name.textContent}  ${chart.unit.textContent}  (${lines})`, 8 * ratio, top + 16 * ratio);
    pen.drawImage(canvas, 0, top + TITLE_PX * ratio);
    top += canvas.height + (TITLE_PX + GAP_PX) * ratio;
  });
  picture.toBlob((blob) => blob && save(`${name}.png`, blob), "image/png");
}
