// Requests that were refused, by code, with the course of the last quarter of an hour and the
// reason, and tenants whose records were rejected.

import { ask } from "../api.js";
import { el, movable, notice, pairs, plain, svg } from "../dom.js";
import { count, span } from "../format.js";

const WIDTH = 180;
const HEIGHT = 22;
const STEPS = 90; // of ten seconds

/** A line of the counts of each step. The same counts stand in numbers next to it. */
function course(steps) {
  const top = Math.max(...steps, 1);
  const points = steps.map((of, at) => {
    const x = WIDTH - ((steps.length - 1 - at) * WIDTH) / (STEPS - 1);
    return `${x.toFixed(1)},${(HEIGHT - 1 - (of / top) * (HEIGHT - 3)).toFixed(1)}`;
  });
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "course", "aria-hidden": "true", preserveAspectRatio: "none" },
    svg("polyline", { points: points.join(" ") }));
}

function rejectedOf(rows) {
  if (!rows.length) return [];
  const title = "Records rejected, by tenant: each answer says which records, and why";
  return [movable("Records rejected", plain(title, ["Tenant", "Last half minute", "Since the start"], rows.map((of) => el("tr", {},
    el("th", { scope: "row", class: "name" }, el("a", { href: `#/tenants?search=${encodeURIComponent(of.tenant)}` }, of.tenant)),
    el("td", { class: "number" }, count(of.late)), el("td", { class: "number" }, count(of.total))))))];
}

export const refusals = {
  title: "Refusals",
  seconds: 10,
  begin() {
    const body = el("tbody");
    const short = el("p", { class: "help" });
    const titles = [["Code"], ["Surface", "wide"], ["Status", "wide"], ["1 min", "number"],
      ["15 min", "number"], ["Since the start", "number"]];
    const table = el("table", { class: "plain" }, el("caption", {}, "Requests refused, by code"),
      el("thead", {}, el("tr", {}, ...titles.map(([title, kind]) => el("th", { scope: "col", class: kind ?? null }, title)),
        el("th", { scope: "col", class: "wide" }, "Course of 15 min"))), body);
    const why = el("div");
    const rejected = el("div");
    const who = el("p", { class: "help" }, "Who: the log has a line for each request, with the code as error, and client, tenant and key_id.");
    const scroller = movable("Refusals", table);
    const place = el("div", { class: "reasons" }, scroller);
    async function refresh(signal) {
      const answer = await ask("refusals", {}, { signal });
      rejected.replaceChildren(...rejectedOf(answer.rejected));
      if (!answer.codes.length) {
        place.replaceChildren(notice("Nothing was refused since the service started.",
          "A request that is refused is here within ten seconds, with its code and the reason."), rejected);
        return;
      }
      place.replaceChildren(scroller, short, why, who, rejected);
      const { quarter_seconds: seconds } = answer;
      short.textContent = seconds < 890 ? `The service counts since ${span(seconds)}.` : "";
      const rows = answer.codes.sort((a, b) => b.quarter - a.quarter || b.total - a.total);
      why.replaceChildren(pairs([...new Map(rows.map((of) => [of.code, of.reason]))], "Why"));
      body.replaceChildren(...rows.map((of) => el("tr", {},
        el("th", { scope: "row", class: "name" }, of.code), el("td", { class: "wide" }, of.surface),
        el("td", { class: "wide" }, String(of.status ?? "–")),
        ...[of.minute, of.quarter, of.total].map((shown) => el("td", { class: "number" }, count(shown))),
        el("td", { class: "wide" }, course(of.steps)))));
    }
    return { node: el("div", { class: "view" }, place), refresh };
  },
};
