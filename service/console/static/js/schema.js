// The columns of a table.

import { empty, h, replace, table } from "./dom.js";
import { count } from "./format.js";

/** Returns the panel of the schema. */
export function schemaPanel() {
  const element = h("section", {});

  function show({ columns, description }) {
    const metadata = Object.entries(description.schema.metadata ?? {});
    replace(
      element,
      h("div", { class: "card" }, h("h2", {}, "Columns"), columnTable(columns)),
      metadata.length === 0
        ? null
        : h("div", { class: "card" }, h("h2", {}, "Metadata"), metadataTable(metadata)),
    );
  }

  return { id: "schema", title: "Schema", element, show };
}

function columnTable(columns) {
  if (columns.length === 0) return empty("The table has no columns.");
  const hasMetadata = columns.some((each) => Object.keys(each.metadata).length > 0);
  const heads = [{ title: "Column" }, { title: "Type" }, { title: "Nulls" }];
  if (hasMetadata) heads.push({ title: "Metadata" });
  const rows = columns.map((each) => [
    h("span", { class: `mono depth-${Math.min(each.depth, 4)}` }, each.path),
    [
      h("span", { class: "mono muted" }, each.type),
      each.dimension === null
        ? ""
        : h("span", { class: "pill accent" }, `vector of ${count(each.dimension)}`),
    ],
    each.nullable ? "allowed" : "never",
    ...(hasMetadata ? [metadataText(each.metadata)] : []),
  ]);
  return table("Columns", heads, rows);
}

function metadataTable(entries) {
  const heads = [{ title: "Name" }, { title: "Value", class: "wide" }];
  return table(
    "Metadata",
    heads,
    entries.map(([name, value]) => [mono(name), mono(value)]),
  );
}

function metadataText(metadata) {
  return Object.entries(metadata).map(([name, value]) => h("div", {}, mono(`${name}: ${value}`)));
}

function mono(text) {
  return h("span", { class: "mono" }, text);
}
