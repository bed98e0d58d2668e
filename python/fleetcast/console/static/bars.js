// A chart of bars: a few values for each of a few names, with their numbers. A table has the same.

import { el, svg } from "./dom.js";

const BAR_PX = 18;
const GAP_PX = 10;
const LEFT_PX = 64;
const RIGHT_PX = 70;
const WIDTH_PX = 440;

/**
 * A figure. `groups` are pairs of a name and its bars; a bar has a `label`, a `value` that may be
 * `null`, its `text` and a `colour`. `mark` is a value to be reached, drawn as a line.
 */
export function bars(title, unit, groups, mark = null) {
  const all = groups.flatMap(([, found]) => found);
  const top = Math.max(...all.map((bar) => bar.value ?? 0), mark ?? 0) || 1;
  const x = (value) => LEFT_PX + ((WIDTH_PX - LEFT_PX - RIGHT_PX) * value) / top;
  const parts = [];
  let y = 0;
  for (const [name, found] of groups) {
    parts.push(svg("text", { x: LEFT_PX - 8, y: y + 13, class: "end" }, name));
    for (const bar of found) {
      const end = x(bar.value ?? 0);
      parts.push(svg("rect", { x: LEFT_PX, y: y + 2, width: Math.max(end - LEFT_PX, 1), height: BAR_PX - 4, rx: 2, class: bar.colour }),
        svg("text", { x: Math.max(end, mark === null ? 0 : x(mark)) + 6, y: y + 13, class: "soft" }, bar.text));
      y += BAR_PX;
    }
    y += GAP_PX;
  }
  if (mark !== null) parts.push(svg("line", { x1: x(mark), x2: x(mark), y1: 0, y2: y - GAP_PX, class: "mark" }));
  const said = groups.map(([name, found]) => `${name}: ${found.map((bar) => `${bar.label} ${bar.text}`).join(", ")}`).join("; ");
  const names = new Map(all.map((bar) => [bar.label, bar.colour]));
  return el("figure", { class: "chart" },
    el("figcaption", {}, el("strong", {}, title), " ", el("span", { class: "unit" }, unit)),
    el("ul", { class: "legend" }, ...[...names].map(([label, colour]) => el("li", {},
      el("span", { class: `swatch ${colour}`, "aria-hidden": "true" }), label))),
    svg("svg", { class: "bars", viewBox: `0 0 ${WIDTH_PX} ${y - GAP_PX}`, role: "img", "aria-label": `${title}: ${said}` }, ...parts));
}
