// The fleet of a tenant: a line for the newest state of each entity or a map, and a panel for the
// chosen entity. The service filters and sorts.

import { ask, ofTenant } from "../api.js";
import { el, fillSelect, labelled, notice, pairs, searchBox, select } from "../dom.js";
import { compact, count, moment, NOTHING, span, value } from "../format.js";
import { WorldMap } from "../map.js";
import { tenantPicker } from "../pickers.js";
import { Table } from "../table.js";

const FIELDS_SHOWN = 6;
const HOURS_SHOWN = 6;
const TRACKS_MAX = 16;
const TRACKS_MS = 60_000;
const SILENT = [["", "any age"], ["60", "silent for 1 min"], ["300", "silent for 5 min"], ["900", "silent for 15 min"],
  ["3600", "silent for 1 h"], ["86400", "silent for 1 day"]];
const LAYOUTS = [["", "table"], ["map", "map of these"], ["world", "map of the world"], ["outlook", "map by forecast"]];
const CHANCE = "chance of less than 6 dB within the hour, %";
/** Ages in seconds up to which a point has a colour; older points have the last. */
const AGES = [[60, "--line-3", "1 min"], [900, "--line-5", "15 min"], [Infinity, "--line-2", "older"]];
const SHADES = ["--ramp-1", "--ramp-2", "--ramp-3", "--ramp-4", "--ramp-5"];
const KEPT = ["measurement", "search", "tag", "field", "least", "most", "silent"];
const seconds = (row) => Date.parse(row.observed_at) / 1000;

const columnsOf = (field) => [
  { title: "Entity", sort: "id", width: "name", cell: (row) => row.entity_id },
  { title: "Measurement", wide: true, cell: (row) => row.measurement },
  { title: "Age", sort: "time", lowest: true, number: true, width: "age", cell: (row) => span(Date.now() / 1000 - seconds(row)) },
  ...(field ? [{ title: field, sort: `field:${field}`, lowest: true, number: true, width: "age",
    cell: (row) => (field in row.fields ? value(row.fields[field]) : NOTHING) }] : []),
  { title: "State", width: "state", wide: Boolean(field), cell: (row) => state(row) },
];

function state(row) {
  const fields = Object.entries(row.fields);
  const shown = fields.slice(0, FIELDS_SHOWN).map(([name, of]) => `${name} ${value(of)}`);
  if (fields.length > FIELDS_SHOWN) shown.push(`${fields.length - FIELDS_SHOWN} more`);
  return shown.join("  ·  ");
}

function values(title, of) {
  const entries = Object.entries(of).map(([name, shown]) => [name, value(shown)]);
  return entries.length ? pairs(entries, title) : el("p", { class: "help" }, `No ${title.toLowerCase()}.`);
}

function detail(row, go, close) {
  const chosen = { measurement: row.measurement, entity: row.entity_id };
  // The charts of an entity that is silent for long show the hours before.
  const isSilent = Date.now() / 1000 - seconds(row) > HOURS_SHOWN * 3600;
  const [from, to] = [HOURS_SHOWN, 0].map((hours) => new Date((seconds(row) + 1 - 3600 * hours) * 1000).toISOString().slice(0, 19));
  const window = isSilent ? { from, to } : {};
  const links = [el("button", { type: "button", click: () => go.to("channels", { ...chosen, ...window }) }, "Channels")];
  if (["link", "pool_interval"].includes(row.measurement)) {
    links.push(el("button", { type: "button", click: () => go.to("forecasts", chosen) }, "Forecasts"));
  }
  return el("section", { class: "detail", "aria-label": `Newest state of ${row.entity_id}` },
    el("h2", {}, row.entity_id),
    el("p", { class: "help" }, `${row.measurement}, ${moment(seconds(row))}`),
    el("div", { class: "actions" }, ...links,
      el("button", { type: "button", class: "quiet", click: close }, "Close")),
    values("Fields", row.fields), values("Tags", row.tags));
}

/** Colours of points by a field, in five equal steps, or by age; with the legend of the colours. */
function coloured(points, field) {
  const swatch = (colour, text) => el("li", {}, el("span", { class: `swatch ${colour.slice(2)}`, "aria-hidden": "true" }), text);
  if (!field) {
    const now = Date.now() / 1000;
    for (const of of points) of.colour = AGES.find(([age]) => now - of.time <= age)[1];
    return AGES.map(([, colour, text]) => swatch(colour, text === "older" ? text : `up to ${text} old`));
  }
  const shown = points.map((of) => of.number).filter((of) => (of ?? null) !== null);
  if (!shown.length) return [el("li", {}, `No ${field} is shown.`)];
  const [low, high] = [shown.reduce((a, b) => Math.min(a, b)), shown.reduce((a, b) => Math.max(a, b))];
  const step = (high - low) / SHADES.length || 1;
  for (const of of points) {
    of.colour = (of.number ?? null) === null ? "--muted" : SHADES[Math.min(Math.floor((of.number - low) / step), SHADES.length - 1)];
  }
  return [el("li", {}, `${field}:`), ...SHADES.map((colour, at) => swatch(colour, `from ${compact(low + at * step)}`))];
}

export const entities = {
  title: "Fleet",
  seconds: 5,
  begin({ parameters, go }) {
    const asked = Object.fromEntries(["tenant", "layout", "sort", ...KEPT].map((key) => [key, parameters[key] ?? ""]));
    let chosen = null;
    const side = el("div", { class: "side" });
    const show = (row) => {
      chosen = row;
      const close = () => {
        show(null);
        if (!asked.layout) table.go(table.active);
      };
      side.replaceChildren(...(row ? [detail(row, go, close)] : []));
    };
    const change = (what) => {
      if ("field" in what || "layout" in what) {
        const sort = asked.sort.includes(":") && "field" in what ? "" : asked.sort;
        return go.to("entities", { ...asked, entity: "", sort, ...what }); // other columns
      }
      Object.assign(asked, what);
      go.note(what);
      show(null);
      if (asked.layout) return go.again();
      return table.reset();
    };
    const filters = () => Object.fromEntries(KEPT.filter((key) => asked.field || !["least", "most"].includes(key))
      .map((key) => [key, asked[key]]));
    const measurements = select([["", "all"]], "", (measurement) => change({ measurement }));
    const narrowed = () => KEPT.some((key) => asked[key]);
    const table = new Table({
      label: "Entities",
      columns: columnsOf(asked.field),
      sort: asked.sort,
      empty: () => !asked.tenant
        ? notice("Choose a tenant.")
        : narrowed()
          ? notice("No entity is like this.", "Take away the search or a filter, or choose another measurement.")
          : notice("Nothing was written yet.", "Send records with an entity_id to POST /telemetry: their entities are here at once."),
      load: async (first, limit, sort, signal) => {
        if (!asked.tenant) return { total: 0, rows: [] };
        if (sort !== asked.sort) go.note({ sort: (asked.sort = sort) });
        const page = await ask(ofTenant(asked.tenant, "entities"), { ...filters(), sort, first, limit }, { signal });
        known(page);
        total.textContent = `${count(page.total)} entities`;
        const same = chosen && page.entities.find((row) =>
          row.entity_id === chosen.entity_id && row.measurement === chosen.measurement);
        if (same && same.observed_at !== chosen.observed_at && !side.contains(document.activeElement)) show(same);
        return { total: page.total, rows: page.entities };
      },
      open: (row) => {
        go.note({ entity: row.entity_id });
        show(row);
      },
    });
    table.failed = go.failed;
    const known = (page) => {
      const found = Object.entries(page.measurements).filter(([, entities]) => entities);
      fillSelect(measurements, [["", "all"], ...found.map(([name, entities]) => [name, `${name} (${count(entities)})`])], asked.measurement);
    };
    const total = el("span", { class: "total" });
    const legend = el("ul", { class: "legend" });
    const map = new WorldMap(async ({ measurement, id }) => {
      const page = await ask(ofTenant(asked.tenant, "entities"), { measurement, entity_id: id, limit: 1 });
      if (page.entities[0]) show(page.entities[0]);
    });
    const nowhere = el("div");

    let tracks = { of: "", at: 0, found: new Map() };
    /** Gives the points of a few entities their ways, asked for once a minute. */
    async function track(points, signal) {
      if (points.length > TRACKS_MAX) return;
      const key = ({ measurement, id }) => JSON.stringify([measurement, id]);
      const of = [asked.tenant, ...points.map(key)].join();
      if (of !== tracks.of || Date.now() - tracks.at > TRACKS_MS) {
        const found = new Map();
        await Promise.all([...new Set(points.map((each) => each.measurement))].map(async (measurement) => {
          const mine = points.filter((each) => each.measurement === measurement);
          const entities = JSON.stringify(mine.map((each) => each.id));
          const answer = await ask(ofTenant(asked.tenant, "tracks"), { measurement, entities }, { signal });
          mine.forEach((each, at) => found.set(key(each), answer.tracks[at]));
        }));
        tracks = { of, at: Date.now(), found };
      }
      for (const point of points) point.track = tracks.found.get(key(point));
    }

    /** Puts the chance that a link loses its signal, in percent, at the place of a point's field. */
    async function foresee(points, signal) {
      const answer = await ask(ofTenant(asked.tenant, "outlook"), {}, { signal });
      const chances = new Map(answer.links.rows.map((of) => [of.entity_id, of.below]));
      for (const point of points) {
        const chance = point[0] === "link" ? chances.get(point[1]) ?? null : null;
        point[5] = chance === null ? null : 100 * chance;
      }
    }

    async function place(signal) {
      if (!asked.tenant) return nowhere.replaceChildren(notice("Choose a tenant."));
      const page = await ask(ofTenant(asked.tenant, "points"), { ...filters(), show: asked.field }, { signal });
      const field = asked.layout === "outlook" ? CHANCE : asked.field;
      if (field === CHANCE) await foresee(page.points, signal);
      known(await ask(ofTenant(asked.tenant, "entities"), { limit: 0 }, { signal }));
      const points = page.points.filter((of) => of[3] !== null && of[4] !== null && Math.abs(of[3]) <= 90 && Math.abs(of[4]) <= 180)
        .map(([measurement, id, time, lat, lon, number]) => ({ measurement, id, time, lat, lon, number,
          label: `${id}, ${measurement}, ${span(Date.now() / 1000 - time)} old${(number ?? null) === null ? "" : `, ${field} ${compact(number)}`}` }));
      const left = page.total - page.points.length;
      total.textContent = `${count(points.length)} of ${count(page.total)} entities have a place${left ? `; ${count(left)} more were not looked at` : ""}`;
      nowhere.replaceChildren(...(points.length ? [] : [notice("No entity has a place.",
        "Send lat and lon (or latitude and longitude) as fields of a record: its entity is on the map at once.")]));
      legend.replaceChildren(...coloured(points, field));
      await track(points, signal);
      return map.show(points, asked.layout === "world");
    }

    const box = (key, placeholder) => searchBox(asked[key], placeholder, (text) => change({ [key]: text }));
    const node = el("div", { class: "view" },
      el("div", { class: "filters" },
        tenantPicker(asked.tenant, (tenant) => change({ tenant, measurement: "" })),
        labelled("Measurement", measurements),
        labelled("Search", box("search", "part of an id")),
        labelled("Tag", box("tag", "key=value")),
        labelled("Age", select(SILENT, asked.silent, (silent) => change({ silent }))),
        labelled("Field", box("field", "its name")),
        ...(asked.field ? [labelled("At least", box("least", "number")), labelled("At most", box("most", "number"))] : []),
        labelled("Show", select(LAYOUTS, asked.layout, (layout) => change({ layout }))), total),
      ...(asked.layout ? [legend, nowhere] : []),
      el("div", { class: "split" }, asked.layout ? map.node : table.node, side));
    const end = () => {
      table.end();
      map.end();
    };
    return { node, refresh: (signal) => (asked.layout ? place(signal) : table.refresh(signal)), end };
  },
};
