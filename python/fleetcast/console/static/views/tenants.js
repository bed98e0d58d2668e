// Tenants: the rate of their records, their stored data, and their rejected records.

import { ask } from "../api.js";
import { el, figures, labelled, notice, searchBox } from "../dom.js";
import { bytes, count, figure } from "../format.js";
import { Table } from "../table.js";

const COLUMNS = [
  { title: "Tenant", sort: "tenant", width: "name", cell: (row) => named(row) },
  { title: "Status", wide: true, cell: (row) => state(row) ?? (row.live_ingest ? "active" : "read only") },
  { title: "Plan", wide: true, cell: (row) => row.plan },
  { title: "Records/s", sort: "rate", number: true, cell: (row) => figure(row.rate) },
  { title: "Rows", sort: "rows", number: true, cell: (row) => count(row.rows) },
  { title: "Series", sort: "series", number: true, wide: true, cell: (row) => count(row.series) },
  { title: "Stored", sort: "bytes", number: true, cell: (row) => bytes(row.bytes) },
  { title: "Rejected", sort: "rejected", number: true, wide: true, cell: (row) => count(row.rejected) },
  { title: "Rejected/s", number: true, wide: true, cell: (row) => figure(row.rejected_rate) },
  { title: "Not shown", number: true, wide: true, cell: (row) => count(row.unreadable) },
];

function state(row) {
  if (!row.readable) return el("span", { class: "tag bad" }, "unreadable");
  return row.status === "active" ? null : el("span", { class: "tag warn" }, row.status);
}

/** The name. If there is no room for a column of states, a bad state stands next to the name. */
function named(row) {
  const unusual = state(row);
  return unusual ? el("span", {}, row.tenant, el("span", { class: "narrow" }, " ", unusual)) : row.tenant;
}

export const tenants = {
  title: "Tenants",
  seconds: 5,
  begin({ parameters, go }) {
    let search = parameters.search ?? "";
    const sums = el("div");
    const table = new Table({
      label: "Tenants",
      columns: COLUMNS,
      sort: "-rate",
      empty: () => search
        ? notice("No tenant has this in its name.")
        : notice("There is no tenant yet.", "Make one: fleetcast tenant create NAME"),
      load: async (first, limit, sort, signal) => {
        const page = await ask("tenants", { search, sort, first, limit }, { signal });
        const rate = page.rate_seconds === null ? null : page.sums.rate;
        sums.replaceChildren(figures([
          ["Tenants", count(page.total)],
          ["Records/s", figure(rate)],
          ["Rows", count(page.sums.rows)],
          ["Stored", bytes(page.sums.bytes)],
        ]));
        return page;
      },
      open: (row) => go.to("entities", { tenant: row.tenant, measurement: "", entity: "" }),
    });
    table.failed = go.failed;
    const box = searchBox(search, "part of a name", (text) => {
      search = text;
      go.note({ search });
      table.reset();
    });
    const node = el("div", { class: "view" }, sums,
      el("div", { class: "filters" }, labelled("Search", box)), table.node);
    return { node, refresh: (signal) => table.refresh(signal), end: () => table.end() };
  },
};
