// Overview: what an operator looks at first, each part with the way to its view.

import { ask, ofTenant } from "../api.js";
import { Chart, ChartGroup } from "../chart.js";
import { el, figures, plain } from "../dom.js";
import { bytes, count, figure, minutes, span } from "../format.js";

const DAY_SECONDS = 86_400;
const SPAN_SHOWN_MIN = 600;
const SILENT_SECONDS = 900;
const SILENT_AGE_MS = 60_000; // so long counts of silent entities are shown
const SPAN_SHOWN_MAX = 10 * 365 * DAY_SECONDS;
const FAMILIES = { snr: "SNR", demand: "demand" };
const BAND = { snr: "80 %", demand: "89 %" };

/** A card with a title that leads to a view. */
function card(title, address, ...content) {
  return el("section", { class: "card" }, el("h2", {}, address ? el("a", { href: address }, title) : title), ...content);
}

function table(caption, heads, rows) {
  return plain(caption, heads, rows.map(([name, ...cells]) => el("tr", {}, el("th", { scope: "row", class: "name" }, name),
    ...cells.map((cell) => el("td", { class: "number" }, cell)))));
}

const say = (text) => el("p", { class: "help" }, text);

function untilFull({ free_bytes: free, bytes_per_day: daily }) {
  const seconds = daily > 0 ? (free / daily) * DAY_SECONDS : Infinity;
  return seconds > SPAN_SHOWN_MAX ? "more than 10 years" : span(seconds);
}

function largest(answer, silent) {
  const fleet = (tenant, more, text) => el("a", { href: `#/entities?tenant=${encodeURIComponent(tenant)}${more}` }, text);
  const rows = answer.largest.map(({ tenant, bytes: size, rows: stored }) => [
    fleet(tenant, "", tenant), bytes(size), count(stored),
    silent.has(tenant) ? fleet(tenant, `&silent=${SILENT_SECONDS}&sort=-time`, count(silent.get(tenant))) : "–"]);
  return card("Largest tenants", "#/tenants", rows.length
    ? table("Silent: entities without a record for 15 minutes", ["Tenant", "Stored", "Rows", "Silent"], rows)
    : say("There is no tenant yet. Make one: fleetcast tenant create NAME"));
}

function refused(answer) {
  const rows = answer.refusals.map((of) => [of.code, of.surface, count(of.quarter)]);
  return card("Refusals", "#/refusals", rows.length ? table("In the last quarter of an hour", ["Code", "Surface", "Count"], rows)
    : say("No request was refused in the last quarter of an hour."));
}

function quality(answer) {
  const rows = answer.forecasts.map((of) => [`${FAMILIES[of.family]}, ${minutes(of.horizon_minutes)}`, count(of.scored),
    of.within === null ? "–" : `${(100 * of.within).toFixed(0)} %`, BAND[of.family]]);
  return card("Forecasts", "#/forecasts", rows.length
    ? table("How often the truth lay in the band", ["Horizon", "Scored", "Within", "Wanted"], rows)
    : say("No forecast was scored since the service started. A forecast is scored once its time has come, if a client asked for it."));
}

function findings(answer) {
  if (answer.findings === null) return card("Doctor", null, say("fleetcast doctor looks at this installation now…"));
  const bad = answer.findings.filter((of) => !of.ok || of.advice);
  if (!bad.length) return card("Doctor", null, say(`All ${answer.findings.length} checks of fleetcast doctor are well.`));
  return card("Doctor", null, el("ul", { class: "findings" }, ...bad.map((of) => el("li", { class: of.ok ? "warn" : "bad" },
    el("strong", {}, of.check), `: ${of.detail}`, of.advice ? el("p", { class: "help" }, of.advice) : null))));
}

export const overview = {
  title: "Overview",
  seconds: 10,
  begin() {
    const sums = el("div");
    let window = null;
    let last = null;
    const group = new ChartGroup((start, end) => { window = [start, end]; draw(last); }, () => { window = null; draw(last); });
    const chart = new Chart("Records a second", "", group);
    const cards = el("div", { class: "cards" });

    let silent = new Map();
    let countedAt = 0;
    /** Counts the silent entities of the tenants that are shown. A store that cannot be read has none. */
    async function listen(tenants, signal) {
      if (Date.now() - countedAt < SILENT_AGE_MS) return;
      countedAt = Date.now();
      const counts = await Promise.all(tenants.map(({ tenant }) => ask(ofTenant(tenant, "entities"),
        { silent: SILENT_SECONDS, limit: 0 }, { signal }).then((page) => [[tenant, page.total]], () => [])));
      silent = new Map(counts.flat());
    }

    function draw(answer) {
      const { step_seconds: step, records, at, disk } = answer;
      const times = records.accepted.map((_, row) => at - (records.accepted.length - row - 0.5) * step);
      const line = (name, colour) => ({ label: name, times, values: records[name].map((of) => of / step), step, colour });
      const [start, end] = window ?? [at - Math.max(Math.min(disk.seconds, DAY_SECONDS), SPAN_SHOWN_MIN), at];
      chart.show({ lines: [line("accepted", 0), line("rejected", 1)], start, end }, "Records a second",
        times.length ? `mean of ${span(step)}, as counted since the service started`
          : `the service started less than ${span(step)} ago`);
    }

    async function refresh(signal) {
      const answer = await ask("overview", {}, { signal });
      last = answer;
      const { disk } = answer;
      sums.replaceChildren(figures([
        ["Records/s", figure(answer.rate)],
        ["Tenants", count(answer.tenants)],
        ...(answer.unreadable ? [["Stores that cannot be read", count(answer.unreadable), "bad"]] : []),
        ["Stored", bytes(answer.stored_bytes)],
        ["Disk free", `${bytes(disk.free_bytes)} of ${bytes(disk.total_bytes)}`],
        [`Disk full in (by the last ${span(disk.seconds)})`, untilFull(disk)],
      ]));
      draw(answer);
      fill(answer);
      listen(answer.largest, signal).then(() => fill(answer)); // a store that hangs delays nothing else
    }
    const fill = (answer) => {
      if (cards.contains(document.activeElement)) return; // a link that is about to be followed
      cards.replaceChildren(largest(answer, silent), refused(answer), quality(answer), findings(answer));
    };
    const node = el("div", { class: "view" }, sums, el("div", { class: "charts one" }, chart.node), cards);
    return { node, refresh, end: () => chart.end() };
  },
};
