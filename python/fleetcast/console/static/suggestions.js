// Suggestions for a query: names that the service knows, and the words of the language.

import { AGGREGATIONS, completed, fitting, FUNCTIONS, placeOf, WORDS } from "./language.js";

const SHOWN = 12;
const KEPT_MS = 60_000;
const named = (kind) => (name) => ({ name, kind });
const LANGUAGE = [...AGGREGATIONS.map(named("aggregation")), ...FUNCTIONS.map(named("function")), ...WORDS.map(named("word"))];

/** Returns `suggest` of a `Combobox`. `load(path, metric)` returns names, which stay for a minute. */
export function suggestions(load) {
  const known = new Map();

  function names(path, metric) {
    const key = `${path}\n${metric}`;
    const kept = known.get(key);
    if (kept && Date.now() - kept.at < KEPT_MS) return kept.found;
    const found = load(path, metric);
    known.set(key, { at: Date.now(), found });
    found.catch(() => known.delete(key));
    return found;
  }

  return async function suggest(query, cursor, wanted) {
    const at = placeOf(query, cursor);
    if (!at || (at.kind === "word" && !at.text && !wanted)) return null;
    const paths = { word: "label/__name__/values", label: "labels", value: `label/${at.label}/values` };
    const found = await names(paths[at.kind], at.metric ?? "");
    const options = found.filter((name) => name !== "__name__").map(named(at.kind === "word" ? "metric" : at.kind));
    const fit = fitting(at.kind === "word" ? [...options, ...LANGUAGE] : options, at.text, SHOWN);
    const isWhole = fit.length === 1 && fit[0].name === at.text;
    return { options: isWhole ? [] : fit, take: (option) => completed(query, cursor, at, option) };
  };
}
