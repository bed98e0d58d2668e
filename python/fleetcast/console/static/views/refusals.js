// Requests that were refused, by code, with the course of the last quarter of an hour and the
// reason, and by key, and tenants whose records were rejected.

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

const tenantLink = (name) => el("a", { href: `#/tenants?search=${encodeURIComponent(name)}` }, name);
const numbers = (...counts) => counts.map((of) => el("td", { class: "number" }, count(of)));

function keysOf({ keys, keys_count: total, rest }) {
  const title = total > keys.length ? `Whose requests: ${keys.length} of ${count(total)} keys and codes` : "Whose requests, by tenant and key";
  const rows = keys.map((of) => el("tr", {},
    el("th", { scope: "row", class: "name" }, tenantLink(of.tenant)),
    el("td", { class: "name", title: of.key?.scopes.join(", ") }, [of.key?.name, of.key_id].filter(Boolean).join(" · ")),
    el("td", { class: "name" }, of.code), el("td", { class: "name wide" }, of.key?.scopes.join(", ") ?? "deleted"),
    ...numbers(of.quarter, of.total)));
  if (rest) rows.push(el("tr", {}, el("th", { scope: "row" }, "Other keys"), el("td"), el("td"), el("td", { class: "wide" }), ...numbers(rest.quarter, rest.total)));
  if (!rows.length) return [el("p", { class: "help" }, "No request with a valid key was refused.")];
  const heads = ["Tenant", ["Key", "name"], ["Code", "name"], ["May", "name wide"], "15 min", "Since the start"];
  return [movable("Refusals by key", plain(title, heads, rows))];
}

function rejectedOf(rows) {
  if (!rows.length) return [];
  const title = "Records rejected, by tenant: each answer says which records, and why";
  return [movable("Records rejected", plain(title, ["Tenant", "Last half minute", "Since the start"], rows.map((of) => el("tr", {},
    el("th", { scope: "row", class: "name" }, tenantLink(of.tenant)), ...numbers(of.late, of.total)))))];
}

export const refusals = {
  title: "Refusals",
  seconds: 10,
  begin() {
    const short = el("p", { class: "help" });
    const table = plain("Requests refused, by code", ["Code", ["Surface", "wide"], ["Status", "wide"], "1 min", "15 min",
      "Since the start", ["Course of 15 min", "wide"]], []);
    const why = el("div");
    const rejected = el("div");
    const keys = el("div");
    const who = el("p", { class: "help" }, "A request without a valid key belongs to no tenant. The log has a line for each request, with the code as error, and the client.");
    const scroller = movable("Refusals", table);
    const place = el("div", { class: "reasons" }, scroller);
    async function refresh(signal) {
      const answer = await ask("refusals", {}, { signal });
      keys.replaceChildren(...keysOf(answer));
      rejected.replaceChildren(...rejectedOf(answer.rejected));
      if (!answer.codes.length) {
        place.replaceChildren(notice("Nothing was refused since the service started.",
          "A request that is refused is here within ten seconds, with its code and the reason."), rejected);
        return;
      }
      place.replaceChildren(scroller, short, why, keys, who, rejected);
      const { quarter_seconds: seconds } = answer;
      short.textContent = seconds < 890 ? `The service counts since ${span(seconds)}.` : "";
      const rows = answer.codes.sort((a, b) => b.quarter - a.quarter || b.total - a.total);
      why.replaceChildren(pairs([...new Map(rows.map((of) => [of.code, of.reason]))], "Why"));
      table.tBodies[0].replaceChildren(...rows.map((of) => el("tr", {},
        el("th", { scope: "row", class: "name" }, of.code), el("td", { class: "wide" }, of.surface),
        el("td", { class: "wide" }, String(of.status ?? "–")),
        ...numbers(of.minute, of.quarter, of.total),
        el("td", { class: "wide" }, course(of.steps)))));
    }
    return { node: el("div", { class: "view" }, place), refresh };
  },
};
