// Which rows each index answers for: fragments from left to right, as wide as they have rows.

import { get, post, withParameter } from "./api.js";
import { coveragePicture } from "./coverage_picture.js";
import { bar, empty, h, replace, table } from "./dom.js";
import { bytes, count, moment, percent, plural } from "./format.js";
import { problem } from "./problem.js";
import { recallButton } from "./recall.js";

const VECTORS = "IVF_";

/** Returns the panel of indices and what they cover. */
export function coveragePanel() {
  const element = h("section", {});

  async function show(context) {
    replace(element, h("div", { class: "card busy" }, "Reading what indices cover"));
    try {
      const [coverage, { indexes }] = await Promise.all([
        readCoverage(context),
        readIndices(context),
      ]);
      replace(
        element,
        pictureCard(coverage),
        h("div", { class: "card" }, h("h2", {}, "Indices"), indexTable(context, indexes)),
        gapCard(coverage),
      );
    } catch (error) {
      replace(element, problem(error));
    }
  }

  return { id: "coverage", title: "Coverage", element, show };
}

function readCoverage({ path, version, signal }) {
  const asked = path("coverage");
  return get(version === null ? asked : withParameter(asked, "version", version), { signal });
}

function readIndices({ path, version, signal }) {
  return post(path("index/list"), { version }, { signal });
}

function pictureCard(coverage) {
  const { fragments } = coverage;
  const deleted = fragments.reduce((sum, each) => sum + Number(each.deleted), 0);
  const rows = fragments.reduce((sum, each) => sum + Number(each.rows), 0);
  if (fragments.length === 0) return h("div", { class: "card" }, empty("The table has no rows."));
  const told = `${plural(fragments.length, "fragment")} with ${plural(rows, "row")}, of which ${count(deleted)} are deleted`;
  return h(
    "figure",
    { class: "card picture" },
    h("h2", {}, "Fragments and indices"),
    h("figcaption", { class: "muted" }, `${told}.`),
    coveragePicture(coverage),
    legend(),
    h("details", {}, h("summary", {}, "The same as a table"), fragmentTable(coverage)),
  );
}

function legend() {
  const entries = [
    ["rows", "live rows"],
    ["deleted", "deleted rows"],
    ["covered", "covered by the index"],
    ["gap", "not covered: such rows are scanned"],
  ];
  return h(
    "ul",
    { class: "legend" },
    entries.map(([name, text]) => h("li", {}, h("span", { class: `swatch ${name}` }), text)),
  );
}

function fragmentTable({ fragments, indices }) {
  const heads = [
    { title: "Fragment", class: "number" },
    { title: "Rows", class: "number" },
    { title: "Deleted", class: "number" },
    ...indices.map((each) => ({ title: each.name })),
  ];
  const reasons = indices.map(
    (each) => new Map(each.gaps.map((gap) => [gap.fragment, gap.reason])),
  );
  const rows = fragments.map((each) => [
    String(each.id),
    count(each.rows),
    count(each.deleted),
    ...reasons.map((gaps) =>
      gaps.has(each.id)
        ? h("span", { class: "pill gap" }, gaps.get(each.id))
        : h("span", { class: "pill good" }, "covered"),
    ),
  ]);
  return table("Fragments and what covers them", heads, rows);
}

function indexTable(context, indexes) {
  if (indexes.length === 0) return empty("The table has no index: every search scans all rows.");
  const heads = [
    { title: "Index" },
    { title: "Type" },
    { title: "Columns" },
    { title: "Covers", class: "wide" },
    { title: "Size", class: "number" },
    { title: "Segments", class: "number" },
    { title: "Made" },
    { title: "Recall", class: "wide" },
  ];
  const rows = indexes.map((each) => {
    const all = Number(each.num_indexed_rows) + Number(each.num_unindexed_rows);
    const share = percent(each.num_indexed_rows, all);
    const told = `${share} of rows; ${count(each.num_unindexed_rows)} are not covered`;
    return [
      h("b", {}, each.index_name),
      h("span", { class: "pill accent" }, each.index_type),
      h("span", { class: "mono" }, each.columns.join(", ")),
      h("span", { class: "share" }, bar(each.num_indexed_rows, all, told), told),
      bytes(each.size_bytes),
      count(each.num_segments),
      each.created_at ? moment(each.created_at) : "–",
      each.index_type.startsWith(VECTORS) ? recallButton(context, each.columns[0]) : "–",
    ];
  });
  return table("Indices", heads, rows);
}

function gapCard({ indices }) {
  const found = indices.flatMap((index) => [
    ...index.segments
      .filter((each) => !each.usable)
      .map((each) => `Segment ${each.uuid} of ${index.name} is not used: ${each.reason}.`),
    ...gapTexts(index),
  ]);
  if (found.length === 0) return null;
  return h(
    "div",
    { class: "card" },
    h("h2", {}, "What indices do not answer for"),
    h(
      "ul",
      { class: "notes" },
      found.map((text) => h("li", {}, text)),
    ),
  );
}

function gapTexts(index) {
  const byReason = new Map();
  for (const { fragment, reason } of index.gaps)
    byReason.set(reason, [...(byReason.get(reason) ?? []), fragment]);
  return [...byReason].map(([reason, ids]) => {
    const shown = ids.slice(0, 12).join(", ") + (ids.length > 12 ? " …" : "");
    return `${index.name}: ${ids.length === 1 ? "fragment" : "fragments"} ${shown}: ${reason}.`;
  });
}
