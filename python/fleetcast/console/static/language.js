// Prometheus' language as far as completion needs it: its words, and the place of the cursor.

export const FUNCTIONS = [
  "abs", "absent", "absent_over_time", "avg_over_time", "ceil", "changes", "clamp", "clamp_max", "clamp_min",
  "count_over_time", "day_of_month", "day_of_week", "day_of_year", "days_in_month", "delta", "deriv", "exp", "floor",
  "histogram_quantile", "hour", "idelta", "increase", "irate", "label_join", "label_replace", "last_over_time", "ln",
  "log10", "log2", "max_over_time", "min_over_time", "minute", "month", "predict_linear", "present_over_time",
  "quantile_over_time", "rate", "resets", "round", "scalar", "sgn", "sort", "sort_desc", "sqrt", "stddev_over_time",
  "stdvar_over_time", "sum_over_time", "time", "timestamp", "vector", "year",
];
export const AGGREGATIONS = ["avg", "bottomk", "count", "count_values", "group", "max", "min", "quantile", "stddev",
  "stdvar", "sum", "topk"];
export const WORDS = ["and", "atan2", "bool", "by", "group_left", "group_right", "ignoring", "offset", "on", "or",
  "unless", "without"];
const OF_LABELS = ["by", "group_left", "group_right", "ignoring", "on", "without"];
const CLOSING = { "(": ")", "{": "}", "[": "]" };
const NAME = /[a-zA-Z_:][\w:]*$/;
const BEFORE_VALUE = /([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)\s*$/;

const nameAt = (text, end) => NAME.exec(text.slice(0, end).trimEnd())?.[0] ?? "";

/**
 * Returns what is typed at the cursor: its `kind` (`word`, `label` or `value`), its `text` so far
 * and where it begins, `from`; `null` if no name can stand there. Within braces the `metric` before
 * them is known, and a value has its `label`. Example: `up{job="no` is the value `no` of the label
 * `job` of the metric `up`.
 */
export function placeOf(query, cursor) {
  const open = [];
  let quote = null;
  for (let at = 0; at < cursor; at += 1) {
    const sign = query[at];
    if (quote) {
      if (sign === "\\" && quote.sign !== "`") at += 1;
      else if (sign === quote.sign) quote = null;
    } else if ("\"'`".includes(sign)) quote = { sign, from: at + 1 };
    else if (sign in CLOSING) open.push({ sign, before: nameAt(query, at) });
    else if (Object.values(CLOSING).includes(sign)) open.pop();
  }
  const { sign, before } = open.at(-1) ?? {};
  const within = sign === "{" ? { metric: before } : {};
  if (quote) {
    const label = BEFORE_VALUE.exec(query.slice(0, quote.from - 1))?.[1];
    if (sign !== "{" || !label) return null;
    return { kind: "value", text: query.slice(quote.from, cursor), from: quote.from, label, quote: quote.sign, ...within };
  }
  const text = NAME.exec(query.slice(0, cursor))?.[0] ?? "";
  const from = cursor - text.length;
  if (sign === "[" || /[\d.]/.test(query[from - 1] ?? "")) return null; // a duration or a number
  if (sign === "{" && /["'`=~!]\s*$/.test(query.slice(0, from))) return null; // a comma or a quote comes first
  const kind = sign === "{" || OF_LABELS.includes(before) ? "label" : "word";
  return { kind, text, from, ...within };
}

const escaped = (value, quote) => (quote === "`" ? value
  : value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll(quote, `\\${quote}`));

/** Puts a chosen name at a place. Returns the query and the cursor after the name. */
export function completed(query, cursor, place, { name, kind }) {
  const rest = place.kind === "value" ? query.slice(cursor) : query.slice(cursor).replace(/^[\w:]+/, "");
  const put = (text, end = "") => ({
    query: query.slice(0, place.from) + text + (end && rest.startsWith(end) ? rest : end + rest),
    cursor: place.from + text.length + end.length,
  });
  if (place.kind === "value") return put(escaped(name, place.quote), place.quote);
  if (kind === "function" || kind === "aggregation") return put(name, "(");
  if (place.metric !== undefined && !/^\s*[=!]/.test(rest)) return put(`${name}="`);
  return put(name);
}

/** The names that fit a text, first those that begin with it. */
export function fitting(names, text, most) {
  const wanted = text.toLowerCase();
  const found = names.map((of) => [of, of.name.toLowerCase().indexOf(wanted)]).filter(([, at]) => at >= 0);
  const first = found.filter(([, at]) => at === 0);
  const later = found.filter(([, at]) => at > 0);
  return [...first, ...later].slice(0, most).map(([of]) => of);
}

/** A series as the language writes it. Example: `snr_db{entity_id="link-1"}`. */
export function written({ __name__: name = "", ...labels }) {
  const parts = Object.entries(labels).map(([label, value]) => `${label}="${escaped(value, "\"")}"`);
  return parts.length || !name ? `${name}{${parts.join(", ")}}` : name;
}
