// Ask: a question in Prometheus' language, its answer at the end of the window as a table, and its
// course over the window as a chart.

import { ask, ofTenant } from "../api.js";
import { Chart, ChartGroup } from "../chart.js";
import { Combobox } from "../combobox.js";
import { el, notice } from "../dom.js";
import { saveCsv, saveJson, savePng } from "../export.js";
import { count, moment, NOTHING, value } from "../format.js";
import { written } from "../language.js";
import { tenantPicker } from "../pickers.js";
import { suggestions } from "../suggestions.js";
import { Table } from "../table.js";
import { TimeWindow } from "../window.js";

const STEPS = 300; // of a chart
const LINES_MAX = 16;
const SERIES_MAX = 500; // whose course is asked for
const COLUMNS_MAX = 5;
const CHARACTERS_MAX = 1000;
const REFUSED = ["bad_data", "execution", "timeout"];
const EXAMPLES = [
  ["avg by (entity_id) (avg_over_time(snr_db{measurement=\"link\"}[5m]))", "The SNR of each link, as the mean of five minutes."],
  ["bottomk(5, min_over_time(snr_db{measurement=\"link\"}[1d]))", "The five worst links of the day, by their lowest SNR."],
  ["last_over_time(snr_db[1d]) unless snr_db", "Links that were heard within the day and not in the last five minutes, with their last SNR."],
  ["topk(3, max_over_time(offered_bytes[1d]) / max_over_time(capacity_bytes[1d]))", "The three pools whose demand of a day came nearest to their capacity."],
];

/** A label of a series. Tenants choose names, so a label may be called `constructor`. */
const labelOf = (metric, name) => (Object.hasOwn(metric, name) ? metric[name] : undefined);
const finite = (text) => (Number.isFinite(Number(text)) ? Number(text) : null);

/** The series of an answer with their newest value; a number or a text is one series. */
function rowsOf({ resultType, result }) {
  if (resultType === "scalar" || resultType === "string") return [{ metric: {}, time: result[0], text: result[1] }];
  return result.map(({ metric, value: at, values = [at] }) => ({ metric, time: values.at(-1)[0], text: values.at(-1)[1] }));
}

/** The labels that all series share, and the names of the others. */
function sharedBy(metrics) {
  const names = [...new Set(metrics.flatMap(Object.keys))].sort();
  const [first] = metrics;
  const shared = metrics.length < 2 ? [] : names.filter((name) => metrics.every((of) => labelOf(of, name) === labelOf(first, name)));
  return { shared: Object.fromEntries(shared.map((name) => [name, first[name]])), own: names.filter((name) => !shared.includes(name)) };
}

const without = (metric, shared) => Object.fromEntries(Object.entries(metric).filter(([name]) => !Object.hasOwn(shared, name)));

export const questions = {
  title: "Ask",
  begin({ parameters, go }) {
    const asked = { tenant: parameters.tenant ?? "", query: parameters.query ?? "" };
    let chart = null;
    let table = null;
    let rows = [];
    const place = el("div", { class: "answers" });
    const window = new TimeWindow(parameters, "3600", (what) => {
      suggest = suggestions(load);
      go.note(what);
      go.again();
    });
    const group = new ChartGroup((start, end) => window.zoom(start, end), () => window.back());
    const put = (path, about, signal) => ask(ofTenant(asked.tenant, `api/v1/${path}`), about, { signal });

    /** The stretch of the window in seconds since 1970. */
    const stretch = () => {
      const end = window.fixed?.[1] ?? Date.now() / 1000;
      return { start: end - window.seconds, end };
    };
    const load = async (path, metric) => (await put(path, metric ? { "match[]": metric, ...stretch() } : {})).data;
    let suggest = suggestions(load);

    const run = (query) => {
      go.note({ query: (asked.query = query) });
      go.again();
    };
    const field = new Combobox("Query in PromQL", asked.query,
      { suggest: (...at) => suggest(...at), run, maxlength: CHARACTERS_MAX, placeholder: "metric, function or aggregation" });
    const save = (text, act) => el("button", { type: "button", click: () => rows.length && act(`${asked.tenant}-query`) }, text);
    const saved = () => {
      const labels = sharedBy(rows.map((row) => row.metric));
      const columns = [...Object.keys(labels.shared), ...labels.own];
      return [["time", ...columns, "value"], rows.map((row) =>
        [new Date(row.time * 1000).toISOString(), ...columns.map((name) => labelOf(row.metric, name) ?? null), finite(row.text) ?? row.text])];
    };

    const warned = el("p", { class: "warned", role: "status" });
    const warn = (warnings) => {
      const text = [...new Set(warnings)].join("; ");
      if (warned.textContent !== text) warned.textContent = text;
    };

    const clear = () => {
      warn([]);
      chart?.end();
      table?.end();
      chart = table = null;
      rows = [];
      place.replaceChildren();
    };

    function begin() {
      clear();
      field.refuse("");
      place.replaceChildren(notice("Nothing is asked yet.", "Type a query and press Enter, or begin with an example."),
        el("ul", { class: "examples" }, ...EXAMPLES.map(([query, about]) => el("li", {},
          el("button", { type: "button", click: () => {
            field.text = query;
            run(query);
          } }, el("code", {}, query)), el("p", { class: "help" }, about)))));
    }

    async function refresh(signal) {
      if (!asked.tenant) return place.replaceChildren(notice("Choose a tenant."));
      if (!asked.query) return begin();
      const { query } = asked;
      const { start, end } = stretch();
      const step = Math.max(Math.ceil(window.seconds / STEPS), 1);
      try {
        const now = await put("query", { query, time: end }, signal);
        const { resultType, result } = now.data;
        const isDrawn = resultType === "scalar" || (resultType === "vector" && result.length <= SERIES_MAX);
        const course = isDrawn ? await put("query_range", { query, start, end, step }, signal) : now;
        field.refuse("");
        await show(now.data, course.data, { start, end, step });
        warn([now, course].flatMap(({ warnings = [] }) => warnings));
      } catch (error) {
        if (!REFUSED.includes(error.code)) throw error;
        clear();
        field.refuse(error.message.replace(/^invalid parameter "query": /, ""));
      }
    }

    function show(now, course, { start, end, step }) {
      rows = rowsOf(now);
      const drawn = course.resultType === "matrix" ? course.result : [];
      if (!rows.length && !drawn.length) {
        clear();
        return place.append(notice("No series is like this in the window.",
          "Look at the names with the arrow keys in the field, or choose a longer window. A sample counts for five minutes."));
      }
      const { shared, own } = sharedBy([...rows, ...drawn].map((of) => of.metric));
      tabulate(own.slice(0, COLUMNS_MAX));
      about.textContent = `${count(rows.length)} series at ${moment(end)}.`
        + (Object.keys(shared).length ? ` All are ${written(shared)}.` : "")
        + (rows.length > SERIES_MAX && !drawn.length ? ` A chart has room for ${SERIES_MAX} at most: choose with topk, or put them together with sum or avg.` : "")
        + (own.length > COLUMNS_MAX ? ` Labels without a column: ${own.slice(COLUMNS_MAX).join(", ")}.` : "");
      if (!drawn.length) {
        chart?.end();
        chart = null;
      } else if (!chart) chart = new Chart("", "", group);
      const parts = [...(chart ? [chart.node] : []), about, table.node];
      if (parts.some((part, at) => part !== place.children[at])) place.replaceChildren(...parts); // else the focus stays
      const lines = drawn.slice(0, LINES_MAX).map(({ metric, values }, at) => ({ colour: at, step,
        label: Object.keys(metric).length ? written(without(metric, shared)) : "value",
        times: values.map(([time]) => time), values: values.map(([, text]) => finite(text)) }));
      const left = drawn.length - lines.length;
      chart?.show({ lines, start, end }, asked.query, left ? `the first ${LINES_MAX} of ${count(drawn.length)} series` : "");
      return table.refresh();
    }

    const about = el("p", { class: "help" });

    function tabulate(labels) {
      if (table?.of === JSON.stringify(labels)) return;
      table?.end();
      const of = (row, sort) => (sort === "value" ? finite(row.text) ?? -Infinity : labelOf(row.metric, sort.slice(1)) ?? "");
      table = new Table({
        label: "Values at the end of the window",
        columns: [...labels.map((name, at) => ({ title: name === "__name__" ? "metric" : name, sort: `=${name}`, wide: at > 1,
          cell: (row) => labelOf(row.metric, name) ?? NOTHING })),
        { title: "Value", sort: "value", number: true, cell: (row) => (finite(row.text) === null ? row.text : value(Number(row.text))) }],
        empty: () => notice("No series has a value at the end of the window."),
        load: async (first, limit, sort) => {
          const up = sort.startsWith("-") ? -1 : 1;
          const key = sort.replace(/^-/, "");
          const sorted = !sort ? rows : [...rows].sort((a, b) => up * (of(a, key) < of(b, key) ? -1 : of(a, key) > of(b, key) ? 1 : 0));
          return { total: rows.length, rows: sorted.slice(first, first + limit) };
        },
      });
      table.of = JSON.stringify(labels);
    }

    const node = el("div", { class: "view" },
      el("div", { class: "filters" }, tenantPicker(asked.tenant, (tenant) => {
        go.note({ tenant: (asked.tenant = tenant) });
        suggest = suggestions(load);
        go.again();
      }), window.node,
      el("div", { class: "actions" }, save("CSV", (name) => saveCsv(name, ...saved())), save("JSON", (name) => saveJson(name, ...saved())),
        save("PNG", (name) => chart && savePng(name, [chart])))),
      el("div", { class: "filters" }, field.node, el("button", { type: "button", click: () => run(field.text) }, "Run")),
      field.said, warned, place);
    return { node, refresh, end: clear, get seconds() { return asked.query ? window.every : Infinity; } };
  },
};
