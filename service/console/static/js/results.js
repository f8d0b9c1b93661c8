// The rows of an answer.

import { toJson } from "./json.js";
import { empty, h, replace, table } from "./dom.js";
import { bytes, count, figure, millis, plural } from "./format.js";
import { rankPlot } from "./plot.js";

const RANKS = ["_distance", "_score", "_relevance_score"];
const SHORT = 160;
const LONG = 32;
const MOST_ROWS = 500;
const PLANS = {
  ann: "by an index",
  exact: "all rows compared",
  text: "by words",
  hybrid: "vector and words",
  scan: "scan",
};

/** Shows an answer in an element; `near` is called with the id of the row whose neighbours are wanted. */
export function showRows(element, answer, near) {
  const ranks = RANKS.filter((name) => answer.columns.includes(name));
  replace(
    element,
    statsLine(answer),
    answer.rows.length === 0
      ? empty("No row answers this query.")
      : [
          h(
            "div",
            { class: "plots" },
            ranks.map((name) =>
              rankPlot(
                name,
                answer.rows.map((row) => row[name]),
              ),
            ),
          ),
          rowTable(answer, near),
        ],
  );
}

function statsLine({ num_rows: rows, stats }) {
  const facts = [
    ["took", millis(stats.elapsed_ms)],
    ["version", String(stats.version)],
    ["read", `${bytes(stats.bytes_read)} in ${plural(stats.store_requests, "request")}`],
    ["cache", `${count(stats.cache_hits)} found, ${count(stats.cache_misses)} not`],
  ];
  if (stats.partitions_total > 0)
    facts.push(["probed", `${count(stats.partitions_probed)} of ${count(stats.partitions_total)}`]);
  if (stats.rows_scanned_flat > 0) facts.push(["scanned", plural(stats.rows_scanned_flat, "row")]);
  if (stats.rows_refined > 0) facts.push(["refined", plural(stats.rows_refined, "row")]);
  return h(
    "div",
    { class: "stats", role: "status" },
    h("b", {}, plural(rows, "row")),
    h("span", { class: "pill accent" }, PLANS[stats.plan] ?? stats.plan),
    ["ann", "exact", "hybrid"].includes(stats.plan)
      ? h(
          "span",
          { class: stats.exact ? "pill good" : "pill gap" },
          stats.exact ? "true distances" : "estimated distances",
        )
      : null,
    facts.map(([name, value]) => h("span", { class: "muted" }, `${name} `, h("b", {}, value))),
  );
}

function rowTable({ columns, rows }, near) {
  const first = ["_rowid", ...RANKS].filter((name) => columns.includes(name));
  const names = [...first, ...columns.filter((name) => !first.includes(name))];
  const heads = names.map((name) => ({ title: name, class: classOf(name, rows) }));
  const shown = rows.slice(0, MOST_ROWS);
  const body = shown.map((row) => names.map((name) => cell(name, row[name], near)));
  const note = `The first ${count(shown.length)} of ${plural(rows.length, "row")} are shown.`;
  return [
    table("Rows of the answer", heads, body),
    shown.length < rows.length ? h("p", { class: "muted" }, note) : null,
  ];
}

function classOf(name, rows) {
  if (rows.some((row) => isNumber(row[name]))) return "number";
  return rows.some((row) => textOf(row[name]).length > LONG) ? "text long" : "text";
}

function nearButton(id, near) {
  return h(
    "button",
    {
      type: "button",
      class: "small quiet",
      title: `Neighbours of row ${id}`,
      "aria-label": `Neighbours of row ${id}`,
      on: { click: () => near(id) },
    },
    String(id),
  );
}

function textOf(value) {
  return typeof value === "string" ? value : toJson(value ?? null);
}

function cell(name, value, near) {
  if (name === "_rowid" && near !== null) return nearButton(value, near);
  if (value === null || value === undefined) return h("span", { class: "null" }, "null");
  if (RANKS.includes(name)) return figure(value);
  const text = textOf(value);
  if (text.length <= SHORT) return text;
  return h(
    "details",
    { class: "cut" },
    h("summary", {}, `${text.slice(0, SHORT)}…`),
    h("div", {}, text),
  );
}

function isNumber(value) {
  return typeof value === "number" || typeof value === "bigint";
}
