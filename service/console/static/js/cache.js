// What the service holds in memory.

import { get } from "./api.js";
import { bar, empty, h, replace, table } from "./dom.js";
import { bytes, count, percent, plural } from "./format.js";
import { problem } from "./problem.js";

/** Returns what shows the cache of the process that answers. */
export function cacheView() {
  const element = h("section", {});

  async function show() {
    const again = h("button", { type: "button", on: { click: show } }, "Read again");
    const head = h("div", { class: "heading" }, h("h1", {}, "Cache"), again);
    try {
      const cache = await get("v1/cache");
      replace(element, head, totals(cache), tables(cache), disk(cache.disk));
    } catch (error) {
      replace(element, head, problem(error));
    }
  }

  return { element, show };
}

function totals(cache) {
  const asked = Number(cache.hits) + Number(cache.misses);
  const told = `${bytes(cache.used_bytes)} of ${bytes(cache.budget_bytes)} in use`;
  const facts = [
    ["In use", bytes(cache.used_bytes)],
    ["Budget", bytes(cache.budget_bytes)],
    ["Entries", count(cache.entries)],
    ["Found there", percent(cache.hits, asked)],
    ["Misses", count(cache.misses)],
    ["Evicted", count(cache.evictions)],
    ["Loading now", count(cache.loads_in_flight)],
  ];
  return h(
    "div",
    { class: "card spaced" },
    h("h2", {}, told),
    h("div", { class: "whole" }, bar(cache.used_bytes, cache.budget_bytes, told)),
    figures(facts),
    h(
      "p",
      { class: "muted" },
      "Of the process that answered; with several workers, each has its own.",
    ),
  );
}

function disk(found) {
  if (found === null) return null;
  const told = `${bytes(found.used_bytes)} of ${bytes(found.budget_bytes)} on the local disk`;
  const facts = [
    ["Found there", percent(found.hits, Number(found.hits) + Number(found.misses))],
    ["Misses", count(found.misses)],
    ["Damaged", count(found.damaged)],
  ];
  return h(
    "div",
    { class: "card" },
    h("h2", {}, told),
    h("div", { class: "whole" }, bar(found.used_bytes, found.budget_bytes, told)),
    figures(facts),
    h("p", { class: "muted" }, "Of remote stores, for all workers."),
  );
}

function figures(facts) {
  return h(
    "dl",
    { class: "figures" },
    facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

function nameOf({ table: name }) {
  return name ?? "elsewhere";
}

function tables({ tables: found, budget_bytes: budget }) {
  const heads = [
    { title: "Table" },
    { title: "In memory", class: "wide" },
    { title: "Entries", class: "number" },
    { title: "Found there", class: "number" },
    { title: "Misses", class: "number" },
    { title: "Evicted", class: "number" },
  ];
  const rows = found.map((each) => [
    h("span", { class: "mono" }, nameOf(each)),
    h(
      "span",
      { class: "share" },
      bar(each.used_bytes, budget, `${nameOf(each)} takes ${bytes(each.used_bytes)}`),
      bytes(each.used_bytes),
    ),
    count(each.entries),
    percent(each.hits, Number(each.hits) + Number(each.misses)),
    count(each.misses),
    count(each.evictions),
  ]);
  return h(
    "div",
    { class: "card" },
    h("h2", {}, plural(found.length, "table")),
    found.length === 0
      ? empty("Nothing was asked for yet.")
      : table("Tables in the cache", heads, rows),
  );
}
