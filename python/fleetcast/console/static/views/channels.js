// Channels of entities over a window: the mean of each step between its minimum and its maximum.

import { ask, ofTenant } from "../api.js";
import { Chart, ChartGroup } from "../chart.js";
import { el, fillSelect, labelled, notice, select } from "../dom.js";
import { saveCsv, saveJson, savePng } from "../export.js";
import { moment, NOTHING, span, value } from "../format.js";
import { channelPicker, entityOf, entityPicker, severalOf, tenantPicker } from "../pickers.js";
import { Table } from "../table.js";
import { TimeWindow } from "../window.js";

const STEPS = { "15s": 15, "30s": 30, "1m": 60, "5m": 300, "15m": 900, "1h": 3600 };
const LAYOUTS = [["", "a chart for each channel"], ["one", "all in one chart"], ["table", "values as a table"]];
const ENTITIES_MAX = 16;
const SEVERAL = 3; // lines of a chart from which bands would cover one another

/** The lines of an answer: one for each entity and channel that has a value. */
export function linesOf(answer) {
  const { interval } = answer.mean;
  const found = [];
  answer.mean.series.forEach((mean, at) => {
    const seconds = mean.times.map((time) => Date.parse(time) / 1000);
    const [low, high] = ["min", "max"].map((of) => {
      const series = answer[of].series[at];
      const rows = new Map(series.times.map((time, row) => [time, row]));
      return (name) => mean.times.map((time) => series.channels[name]?.[rows.get(time)] ?? null);
    });
    for (const [name, values] of Object.entries(mean.channels)) {
      if (!values.some((of) => of !== null)) continue;
      found.push({ entity: mean.entity_id, channel: name, times: seconds, values, low: low(name), high: high(name),
        step: STEPS[interval] });
    }
  });
  return found;
}

/** Columns and rows of all values: raw rows, or the mean, minimum and maximum of each step. */
function rowsOf(answer) {
  const parts = answer.raw ? ["raw"] : ["mean", "min", "max"];
  const rows = new Map();
  const columns = ["time", "entity_id"];
  for (const part of parts) {
    for (const series of answer[part].series) {
      for (const [name, values] of Object.entries(series.channels)) {
        const column = part === "raw" ? name : `${name} ${part}`;
        if (!columns.includes(column)) columns.push(column);
        series.times.forEach((time, row) => {
          const key = `${time} ${series.entity_id}`;
          if (!rows.has(key)) rows.set(key, { time, entity_id: series.entity_id });
          rows.get(key)[column] = values[row];
        });
      }
    }
  }
  const sorted = [...rows.values()].sort((a, b) => Date.parse(b.time) - Date.parse(a.time));
  return [columns, sorted.map((row) => columns.map((column) => row[column] ?? null))];
}

export const channels = {
  title: "Channels",
  begin({ parameters, go }) {
    const asked = {
      tenant: parameters.tenant ?? "", measurement: parameters.measurement ?? "",
      entity: parameters.entity ?? "", more: severalOf(parameters.more), fields: severalOf(parameters.fields),
      layout: parameters.layout ?? "",
    };
    let answer = null;
    let charts = new Map();
    let table = null;
    let rows = [];
    const place = el("div", { class: "charts" });
    const change = (what) => {
      Object.assign(asked, what);
      go.note({ ...what, ...Object.fromEntries(["more", "fields"].filter((key) => key in what)
        .map((key) => [key, what[key].length ? JSON.stringify(what[key]) : ""])) });
      go.again();
    };
    const window = new TimeWindow(parameters, "21600", (what) => {
      go.note(what);
      go.again();
    });
    const group = new ChartGroup((start, end) => window.zoom(start, end), () => window.back());
    const measurements = select([["", "…"]], "", (measurement) => change({ measurement, fields: [] }));
    const entity = entityPicker(asked.entity, () => asked, (id) => change({ entity: id }));
    const other = entityPicker("", () => asked, (id) => {
      other.set("");
      const more = [...new Set([...asked.more, id])].filter((each) => each !== asked.entity);
      change({ more: more.slice(0, ENTITIES_MAX - 1) });
    }, "Compare with");
    const chips = el("ul", { class: "chips", "aria-label": "Compared entities" });
    const fields = channelPicker((names) => change({ fields: names }));
    const layouts = select(LAYOUTS, asked.layout, (layout) => change({ layout }));
    const save = (text, act) => el("button", { type: "button", click: () => answer && act(`${asked.tenant}-${asked.entity}`) }, text);
    const saves = el("div", { class: "actions" },
      save("CSV", (name) => saveCsv(name, ...rowsOf(answer))),
      save("JSON", (name) => saveJson(name, ...rowsOf(answer))),
      save("PNG", (name) => charts.size && savePng(name, [...charts.values()])));

    const clear = () => {
      for (const chart of charts.values()) chart.end();
      table?.end();
      charts = new Map();
      table = null;
    };
    const empty = (title, advice) => {
      clear();
      answer = null;
      place.replaceChildren(notice(title, advice));
    };

    async function settle(signal) {
      const page = await ask(ofTenant(asked.tenant, "entities"), { measurement: asked.measurement, limit: 1 }, { signal });
      const known = Object.keys(page.measurements).filter((name) => page.measurements[name]);
      if (!known.includes(asked.measurement)) asked.measurement = known[0] ?? "";
      fillSelect(measurements, known, asked.measurement);
      if (asked.entity && await entityOf(asked.tenant, asked.measurement, asked.entity, signal)) return;
      asked.entity = asked.measurement ? await entity.first() ?? "" : "";
      entity.set(asked.entity);
      go.note({ measurement: asked.measurement, entity: asked.entity });
    }

    async function refresh(signal) {
      if (!asked.tenant) return empty("Choose a tenant.");
      await settle(signal);
      if (!asked.entity) {
        return empty("Nothing was written yet.", "Send records with POST /telemetry; their channels are here at once.");
      }
      const found = await ask(ofTenant(asked.tenant, "channels"), {
        entity_id: asked.entity, more: asked.more.length ? JSON.stringify(asked.more) : "",
        fields: asked.fields.length ? JSON.stringify(asked.fields) : "", measurement: asked.measurement, ...window.query,
        raw: asked.layout === "table" && window.seconds <= (answer?.raw_seconds ?? 0) ? "1" : "",
      }, { signal });
      answer = found;
      fields.fill(answer.names, asked.fields);
      chips.replaceChildren(...asked.more.map((id) => el("li", {}, id, el("button", { type: "button", "aria-label": `Remove ${id}`,
        click: () => change({ more: asked.more.filter((each) => each !== id) }) }, "×"))));
      if (asked.layout === "table") return list();
      const lines = linesOf(answer);
      if (!lines.length) {
        return empty("No number was measured in this window.", "Choose a longer window or another entity; Fleet shows the age of each.");
      }
      draw(lines);
    }

    function draw(lines) {
      const several = asked.more.length > 0;
      const parts = new Map();
      for (const line of lines) {
        const name = asked.layout === "one" ? asked.measurement : line.channel;
        if (!parts.has(name)) parts.set(name, []);
        parts.get(name).push(line);
      }
      if ([...charts.keys()].join("\n") !== [...parts.keys()].join("\n") || table) {
        clear();
        charts = new Map([...parts.keys()].map((name) => [name, new Chart(name, "", group)]));
        place.replaceChildren(...[...charts.values()].map((chart) => chart.node));
        for (const name of ["one", "tall"]) place.classList.toggle(name, charts.size === 1);
      }
      const ids = [asked.entity, ...asked.more];
      for (const [name, of] of parts) {
        const shown = of.slice(0, ENTITIES_MAX).map((line, at) => {
          const bands = of.length < SEVERAL ? {} : { low: null, high: null };
          const one = asked.layout === "one";
          const label = one ? (several ? `${line.entity} ${line.channel}` : line.channel) : several ? line.entity : "mean";
          return { ...line, ...bands, label, colour: one ? at : Math.max(ids.indexOf(line.entity), 0) };
        });
        const left = of.length - shown.length;
        const unit = `mean of ${answer.mean.interval}${shown[0].low ? ", minimum to maximum" : ""}${left ? `; ${left} more lines have no room` : ""}`;
        charts.get(name).show({ lines: shown, start: answer.start, end: answer.end }, name, unit);
      }
    }

    function list() {
      const [columns, found] = rowsOf(answer);
      if (!found.length) return empty("No number was measured in this window.", "Choose a longer window or another entity.");
      rows = found;
      const label = answer.raw ? "Raw values" : `Mean, minimum and maximum of each ${answer.mean.interval}`;
      if (!table || table.of !== columns.join("\n") + label) {
        clear();
        table = new Table({
          label,
          columns: columns.map((title, at) => ({ title, number: at > 1, width: at ? null : "when",
            cell: (row) => (at === 0 ? moment(Date.parse(row[0]) / 1000) : row[at] === null ? NOTHING : value(row[at])) })),
          empty: () => notice("No number was measured in this window."),
          load: async (first, limit) => ({ total: rows.length, rows: rows.slice(first, first + limit) }),
        });
        table.of = columns.join("\n") + label;
        place.classList.add("one");
        place.replaceChildren(el("p", { class: "help" }, `${label}. ${rawAdvice()}`), table.node);
      }
      return table.refresh();
    }

    const rawAdvice = () => (answer.raw ? "" : `A window of at most ${span(answer.raw_seconds)} has the raw values.`);

    const node = el("div", { class: "view" },
      el("div", { class: "filters" },
        tenantPicker(asked.tenant, (tenant) => change({ tenant, measurement: "", entity: "", more: [], fields: [] })),
        labelled("Measurement", measurements), entity.node, other.node, window.node),
      el("div", { class: "filters" }, fields.node, labelled("Show", layouts), saves, chips,
        el("span", { class: "help" }, "Drag in a chart to zoom, double click to go back.")),
      place);
    return { node, refresh, end: clear, get seconds() { return window.every; } };
  },
};
