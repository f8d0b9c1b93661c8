// One table: its heading, and a tab for each thing to know of it.

import { get, pathOf, post } from "./api.js";
import { flatten } from "./columns.js";
import { coveragePanel } from "./coverage.js";
import { h, replace } from "./dom.js";
import { count, plural } from "./format.js";
import { isAbort, problem } from "./problem.js";
import { queryPanel } from "./query_panel.js";
import { schemaPanel } from "./schema.js";
import { tabs } from "./tabs.js";
import { versionsPanel } from "./versions.js";

/** Shows a table in an element; `moved` is called with the tab and version that come into view. */
export class TableView {
  constructor(element, parts, moved) {
    this.element = element;
    this.parts = parts;
    this.moved = moved;
    this.leaving = new AbortController();
  }

  /** Reads what the table is, at a version (null = the latest), and opens a tab. */
  async open(version, tab) {
    replace(this.element, h("p", { class: "busy muted" }, `Opening ${this.parts.at(-1)}`));
    try {
      this.context = await this.read(version);
      this.draw(tab);
    } catch (error) {
      if (isAbort(error)) return;
      replace(this.element, h("h1", {}, this.parts.at(-1)), problem(error));
    }
  }

  /** Ends what is still being read. */
  leave() {
    this.leaving.abort();
  }

  async read(version) {
    const { signal } = this.leaving;
    const path = (rest) => pathOf("table", this.parts, rest);
    const [description, rows, { indexes }, { models }] = await Promise.all([
      post(path("describe/"), { version }, { signal }),
      post(path("count_rows"), { version }, { signal }),
      post(path("index/list"), { version }, { signal }),
      get(path("embed"), { signal }),
    ]);
    return {
      path,
      signal,
      version,
      description,
      rows,
      models,
      columns: flatten(description.schema.fields),
      hasTextIndex: indexes.some((each) => each.index_type === "FTS"),
      numIndices: indexes.length,
    };
  }

  draw(tab) {
    const panels = [
      queryPanel(),
      schemaPanel(),
      versionsPanel((version) => this.open(version, "versions")),
      coveragePanel(),
    ];
    const byId = new Map(panels.map((each) => [each.id, each]));
    const { context } = this;
    const shown = tabs("What to know of the table", panels, (id) => {
      byId.get(id).show(context);
      this.moved(id, context.version);
    });
    replace(this.element, this.heading(), shown.element);
    shown.open(tab);
  }

  heading() {
    const { description, rows, version, numIndices, columns } = this.context;
    const { num_fragments: fragments, num_deleted_rows: deleted } = description.stats;
    const facts = [
      [rows, "row"],
      [deleted, "deleted row"],
      [fragments, "fragment"],
      [columns.filter((each) => each.depth === 0).length, "column"],
      [numIndices, "index", "indices"],
    ];
    const latest = h(
      "button",
      { type: "button", class: "small", on: { click: () => this.open(null, "query") } },
      "Back to the latest",
    );
    return h(
      "div",
      {},
      h(
        "div",
        { class: "heading" },
        h("h1", {}, this.parts.at(-1)),
        h(
          "span",
          { class: version === null ? "pill good" : "pill gap" },
          version === null
            ? `version ${description.version}, the latest`
            : `version ${version}, pinned`,
        ),
        version === null ? null : latest,
      ),
      h(
        "div",
        { class: "facts" },
        facts.map(([value, ...words]) =>
          h("span", {}, h("b", {}, count(value)), plural(value, ...words).replace(/^\S+/, "")),
        ),
        h("span", { class: "place mono" }, description.location),
      ),
    );
  }
}
