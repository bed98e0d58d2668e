// Backtest: how good the forecasts of a tenant's entities were, next to two simple forecasts. A file
// of `fleetcast forecast backtest --json` is shown in the same way.

import { ask, ofTenant } from "../api.js";
import { bars } from "../bars.js";
import { el, figures, labelled, movable, notice, plain, select } from "../dom.js";
import { compact, count, minutes, NOTHING } from "../format.js";
import { tenantPicker } from "../pickers.js";

const FAMILIES = {
  snr: { text: "SNR of links", measurement: "link", target: "snr_db", unit: "dB", levels: { p10: 0.1, p50: 0.5, p90: 0.9 } },
  demand: { text: "Demand of pools", measurement: "pool_interval", target: "offered_bytes", unit: "bytes",
    levels: { p10: 0.1, p50: 0.5, p99: 0.99 } },
};
const FORECASTS = { model: ["ours", "line-1"], last_value: ["last value", "line-2"], same_time: ["same time on other days", "line-3"] };
const FILE_BYTES_MAX = 10_000_000;
const percent = (share) => (share === null ? NOTHING : `${(100 * share).toFixed(0)} %`);

/** The scores of each horizon by forecaster, without horizons that have no score. */
function horizonsOf(scores) {
  const found = new Map();
  for (const row of scores) {
    if (!row.count || !(row.forecast in FORECASTS)) continue;
    if (!found.has(row.horizon_minutes)) found.set(row.horizon_minutes, {});
    found.get(row.horizon_minutes)[row.forecast] = row;
  }
  return [...found].filter(([, of]) => of.model);
}

/** How much lower the loss of the model is than the loss of the best simple forecast. */
function better({ model, ...others }) {
  const best = Math.min(...Object.values(others).map((of) => of.mean_pinball));
  return Number.isFinite(best) && best > 0 ? 1 - model.mean_pinball / best : null;
}
const meanOf = (values) => (values.length ? values.reduce((sum, of) => sum + of, 0) / values.length : null);
const gain = (of) => (of === null ? NOTHING : of < 0 ? `${percent(-of)} worse` : `${percent(of)} better`);

/** Returns true if a document of a file has all that is shown. */
const isBacktest = (of) => Array.isArray(of?.scores) && Object.hasOwn(FAMILIES, of.family)
  && of.scores.every((row) => typeof row?.coverage === "object" && row.coverage && Number.isFinite(row.count));

function page(answer, source) {
  const { unit, levels } = FAMILIES[answer.family];
  const names = Object.keys(levels);
  const [low, , high] = names;
  const found = horizonsOf(answer.scores);
  const inside = ({ coverage }) => coverage[high] - coverage[low];
  const wanted = levels[high] - levels[low];
  const each = (of, value, text) => Object.entries(FORECASTS).filter(([who]) => of[who])
    .map(([who, [label, colour]]) => ({ label, colour, value: value(of[who]), text: text(value(of[who])) }));
  const grouped = (value, text) => found.map(([horizon, of]) => [minutes(horizon), each(of, value, text)]);
  const mean = meanOf(found.map(([, of]) => better(of)).filter((of) => of !== null));
  const within = percent(meanOf(found.map(([, of]) => inside(of.model))));
  const { entities, entities_total: total = entities } = answer;
  const cells = (kind, ...texts) => texts.map((text) => el("td", { class: `number ${kind}` }, text));
  const rows = found.map(([horizon, of]) => el("tr", {}, el("th", { scope: "row", class: "name" }, minutes(horizon)),
    ...cells("", count(of.model.count), ...Object.keys(FORECASTS).map((who) => (of[who] ? compact(of[who].mean_pinball) : NOTHING))),
    ...cells(better(of) < 0 ? "bad" : "good", gain(better(of))),
    ...cells("", percent(inside(of.model)), ...names.map((name) => percent(of.model.coverage[name])))));
  return [
    figures([["Loss, next to the best simple forecast", gain(mean), mean < 0 ? "bad" : "good"],
      [`Truths between ${low} and ${high}`, `${within}, ${percent(wanted)} wanted`],
      ["Entities", total > entities ? `${count(entities)} of ${count(total)}` : count(entities)],
      ["Model", answer.model_version]]),
    el("div", { class: "charts" },
      bars("Loss by horizon", `mean pinball, ${unit}; less is better`, grouped((row) => row.mean_pinball, compact)),
      bars("Truths within the band", `${low} to ${high}; the line is the share that is wanted`, grouped(inside, percent), wanted)),
    movable("Scores by horizon", plain("Scores by horizon", ["Horizon", "Scored", "Loss of ours", "Last value", "Same time",
      "Ours is", "In the band", ...names.map((name) => `Up to ${name}`)], rows)),
    el("p", { class: "help" }, source),
  ];
}

export const backtest = {
  title: "Backtest",
  seconds: 300,
  begin({ parameters, go }) {
    const asked = { tenant: parameters.tenant ?? "", family: parameters.family ?? "snr" };
    if (!(asked.family in FAMILIES)) asked.family = "snr";
    let file = null;
    const place = el("div", { class: "report" });
    const change = (what) => {
      Object.assign(asked, what);
      file = null;
      go.note(what);
      go.again();
    };
    const open = async () => {
      const [chosen] = chooser.files;
      if (!chosen) return;
      const text = chosen.size > FILE_BYTES_MAX ? "" : await chosen.text();
      try {
        file = { name: chosen.name, answer: JSON.parse(text) };
      } catch {
        file = { name: chosen.name, answer: null };
      }
      chooser.value = "";
      go.again();
    };
    const chooser = el("input", { type: "file", accept: ".json,application/json", change: open });

    function opened() {
      const { name, answer } = file;
      if (!isBacktest(answer)) {
        return place.replaceChildren(notice(`${name} is not a backtest.`, "Make one: fleetcast forecast backtest … --json > backtest.json"));
      }
      if (!horizonsOf(answer.scores).length) {
        return place.replaceChildren(notice(`No forecast of ${name} could be scored.`, "Choose earlier origins, or a longer history."));
      }
      return place.replaceChildren(...page(answer, `From ${name}, ${count(answer.origins)} origins of each entity. The file stays in this browser.`));
    }

    async function refresh(signal) {
      if (file) return opened();
      if (!asked.tenant) return place.replaceChildren(notice("Choose a tenant.", "Or open a file of fleetcast forecast backtest … --json."));
      const { measurement, target } = FAMILIES[asked.family];
      let answer;
      try {
        answer = await ask(ofTenant(asked.tenant, "backtests"), { family: asked.family }, { signal });
      } catch (error) {
        if (error.code !== "predictions_not_enabled") throw error;
        return place.replaceChildren(notice("Nothing is predicted here.", error.message));
      }
      if (!answer.entities) {
        return place.replaceChildren(notice(`No ${measurement} of ${asked.tenant} has written lately.`,
          `Send ${measurement} records with ${target}, or choose the other family or another tenant.`));
      }
      if (!horizonsOf(answer.scores).length) {
        return place.replaceChildren(notice("Nothing can be scored yet.",
          `A forecast is scored once its time has come. Send ${target} for a while longer: the shortest horizon is the first.`));
      }
      return place.replaceChildren(...page(answer, `Computed now from stored rows, each forecast from the rows before it: ${count(answer.origins)} `
        + `origins, ${minutes(answer.every_minutes)} apart, of the entities that wrote last. An entity of less than a day has no same time on `
        + "other days: its last value counts. For a longer time, give a file of fleetcast export to fleetcast forecast backtest … --json, and "
        + "open the answer here."));
    }
    const node = el("div", { class: "view" },
      el("div", { class: "filters" },
        tenantPicker(asked.tenant, (tenant) => change({ tenant })),
        labelled("Family", select(Object.entries(FAMILIES).map(([name, of]) => [name, of.text]), asked.family, (family) => change({ family }))),
        labelled("Or a file of forecast backtest --json", chooser)),
      place);
    return { node, refresh };
  },
};
