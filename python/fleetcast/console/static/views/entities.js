// Entities of a tenant: a line for the newest state of each, and a panel for the chosen entity.

import { ask, ofTenant } from "../api.js";
import { el, fillSelect, labelled, notice, pairs, searchBox, select } from "../dom.js";
import { count, moment, span, value } from "../format.js";
import { tenantPicker } from "../pickers.js";
import { Table } from "../table.js";

const FIELDS_SHOWN = 6;
const seconds = (row) => Date.parse(row.observed_at) / 1000;

const COLUMNS = [
  { title: "Entity", width: "name", cell: (row) => row.entity_id },
  { title: "Measurement", wide: true, cell: (row) => row.measurement },
  { title: "Age", number: true, width: "age", cell: (row) => span(Date.now() / 1000 - seconds(row)) },
  { title: "State", width: "state", cell: (row) => state(row) },
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
  const links = [el("button", { type: "button", click: () => go.to("channels", chosen) }, "Channels")];
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

export const entities = {
  title: "Entities",
  seconds: 5,
  begin({ parameters, go }) {
    const asked = {
      tenant: parameters.tenant ?? "", measurement: parameters.measurement ?? "",
      search: parameters.search ?? "",
    };
    let chosen = null;
    const side = el("div", { class: "side" });
    const show = (row) => {
      chosen = row;
      const close = () => {
        show(null);
        table.go(table.active);
      };
      side.replaceChildren(...(row ? [detail(row, go, close)] : []));
    };
    const change = (what) => {
      Object.assign(asked, what);
      go.note(what);
      show(null);
      table.reset();
    };
    const measurements = select([["", "all"]], "", (measurement) => change({ measurement }));
    const table = new Table({
      label: "Entities",
      columns: COLUMNS,
      empty: () => !asked.tenant
        ? notice("Choose a tenant.")
        : asked.search || asked.measurement
          ? notice("No entity is like this.", "Take away the search, or choose another measurement.")
          : notice("Nothing was written yet.", "Entities are here as soon as records with an entity_id come."),
      load: async (first, limit, _sort, signal) => {
        if (!asked.tenant) return { total: 0, rows: [] };
        const { measurement, search } = asked;
        const page = await ask(ofTenant(asked.tenant, "entities"), { measurement, search, first, limit }, { signal });
        const known = Object.entries(page.measurements).filter(([, entities]) => entities);
        fillSelect(measurements, [["", "all"], ...known.map(([name, entities]) => [name, `${name} (${count(entities)})`])], measurement);
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
    const total = el("span", { class: "total" });
    const node = el("div", { class: "view" },
      el("div", { class: "filters" },
        tenantPicker(asked.tenant, (tenant) => change({ tenant, measurement: "" })),
        labelled("Measurement", measurements),
        labelled("Search", searchBox(asked.search, "part of an id", (search) => change({ search }))),
        total),
      el("div", { class: "split" }, table.node, side));
    return { node, refresh: (signal) => table.refresh(signal), end: () => table.end() };
  },
};
