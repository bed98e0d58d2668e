// Tenants: the rate of their records, their stored data, and their rejected records.

import { el, notice } from "../dom.js";
import { bytes, count, figure } from "../format.js";
import { named, tenantTable } from "../tenanttable.js";

const COLUMNS = [
  { title: "Tenant", sort: "tenant", width: "name", cell: (row) => named(row, state(row)) },
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

export const tenants = {
  title: "Tenants",
  seconds: 5,
  begin: (place) => tenantTable("tenants", place, {
    label: "Tenants",
    columns: COLUMNS,
    sort: "-rate",
    empty: (search) => search
      ? notice("No tenant has this in its name.")
      : notice("There is no tenant yet.", "Make one: fleetcast tenant create NAME"),
    totals: ({ total, sums, rate_seconds: seconds }) => [
      ["Tenants", count(total)],
      ["Records/s", figure(seconds === null ? null : sums.rate)],
      ["Rows", count(sums.rows)],
      ["Stored", bytes(sums.bytes)],
    ],
    open: (row) => place.go.to("entities", { tenant: row.tenant, measurement: "", entity: "" }),
  }),
};
