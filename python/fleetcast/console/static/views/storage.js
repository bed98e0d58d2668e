// Storage: the log and the segments of each tenant, and the done and due work of compaction.

import { ask, ofTenant } from "../api.js";
import { el, notice, pairs } from "../dom.js";
import { age, bytes, count, moment, span } from "../format.js";
import { named, tenantTable } from "../tenanttable.js";

const COLUMNS = [
  { title: "Tenant", sort: "tenant", width: "name", cell: (row) => named(row, failing(row)) },
  { title: "Log", sort: "log", number: true, cell: (row) => bytes(row.log) },
  { title: "Segments", sort: "segments", number: true, cell: (row) => bytes(row.segments) },
  { title: "Files", number: true, wide: true, cell: (row) => count(row.segment_count) },
  { title: "Names", sort: "names", number: true, wide: true, cell: (row) => bytes(row.names) },
  { title: "Free", sort: "free", number: true, wide: true, cell: (row) => bytes(row.free) },
  { title: "On disk", sort: "bytes", number: true, cell: (row) => bytes(row.bytes) },
  { title: "B/value", number: true, wide: true, cell: (row) => (row.values ? (row.bytes / row.values).toFixed(2) : "–") },
  { title: "Upkeep", wide: true, cell: (row) => failing(row) ?? "well" },
];

const failing = (row) =>
  (row.failing_since ? el("span", { class: "tag bad" }, `fails, ${age(row.failing_since)}`) : null);

function detail(row, due) {
  const lines = {
    "Rows stored": count(row.rows),
    "Log": `${bytes(row.log)} of ${bytes(row.log_file_bytes)}`,
    "Compacted at": `${bytes(due.log_bytes_due)} of log${due.log_due ? `, or ${moment(due.log_due)}` : ""}`,
    "Oldest in the log": due.log_since ? age(due.log_since) : "the log is empty",
    "Days to merge": due.days_due ? moment(due.days_due) : "none",
    "List of segments": `replaced ${count(row.generation)} times`,
    "Retention": due.retention_seconds ? span(due.retention_seconds) : "for ever",
  };
  return el("section", { class: "detail", "aria-label": `Store of ${row.tenant}` },
    el("h2", {}, row.tenant), pairs(Object.entries(lines)));
}

export const storage = {
  title: "Storage",
  seconds: 10,
  begin(place) {
    const side = el("div", { class: "side" });
    return tenantTable("storage", place, {
      label: "Stores of tenants",
      columns: COLUMNS,
      sort: "-bytes",
      empty: (search) => notice(search ? "No tenant has this in its name." : "There is no store yet."),
      totals: ({ sums, compaction }) => [
        ["Log", bytes(sums.log)],
        ["Segments", bytes(sums.segments)],
        ["On disk", bytes(sums.bytes)],
        ["Written by compaction", bytes(compaction.written_bytes)],
        ["Compactions failed", count(compaction.failed), compaction.failed ? "bad" : null],
        ["Stores whose upkeep fails", count(compaction.failing), compaction.failing ? "bad" : null],
        ["Last upkeep", compaction.progress_at ? age(compaction.progress_at) : "–"],
      ],
      open: async (row) => {
        try {
          side.replaceChildren(detail(row, await ask(ofTenant(row.tenant, "upcoming"))));
        } catch (error) {
          side.replaceChildren(notice("This store cannot be looked at.", error.message, "error"));
        }
      },
    }, side);
  },
};
