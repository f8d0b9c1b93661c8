// The query box.

import { completeColumns } from "./completion.js";
import { field, freshId, h, replace } from "./dom.js";
import { post } from "./api.js";
import { bodyOf, parseRowId, parseVector } from "./query_body.js";

const MODES = [
  ["meaning", "Meaning"],
  ["vector", "Vector"],
  ["row", "Row"],
  ["words", "Words"],
  ["hybrid", "Hybrid"],
  ["plain", "Filter"],
];
/** Of these the first that a table allows is chosen for it: all but texts can be asked at once. */
const FIRST = ["meaning", "row", "plain"];
const METRICS = ["l2", "cosine", "dot", "hamming"];
const NEAR = { meaning: "Meaning of the words", vector: "A vector", row: "A row" };

/** The form of a query about one table; `run` is called when it is sent. */
export class QueryForm {
  constructor(context, run) {
    this.context = context;
    this.vectors = context.columns.filter((each) => each.dimension !== null);
    this.texts = context.columns.filter((each) => each.isText);
    this.controls = this.makeControls();
    this.modes = MODES.filter(([mode]) => this.allows(mode));
    this.element = h(
      "form",
      {
        class: "card query",
        "aria-label": "Query",
        on: { submit: (event) => this.submit(event, run) },
      },
      this.modeSwitch(),
      (this.ask = h("div", { class: "ask" })),
      this.filterField(),
      this.numbers(),
      this.more(),
      h("div", { class: "buttons" }, h("button", { class: "main", type: "submit" }, "Search")),
    );
    this.choose(FIRST.find((mode) => this.allows(mode)));
  }

  /** Chooses the mode `row` and puts a row id there. */
  nearRow(id) {
    this.controls.rowId.value = String(id);
    this.choose("row");
  }

  /** Returns the body of the query that the form holds; may ask the service for a vector. */
  async body() {
    const near = await this.near(this.mode === "hybrid" ? this.controls.near.value : this.mode);
    return bodyOf(near, this.values());
  }

  allows(mode) {
    const { models } = this.context;
    if (mode === "meaning") return models.length > 0;
    if (mode === "vector" || mode === "row") return this.vectors.length > 0;
    if (mode === "hybrid") return this.vectors.length > 0 && this.texts.length > 0;
    return mode === "plain" || this.texts.length > 0;
  }

  makeControls() {
    const number = (min) => h("input", { type: "number", min, step: 1, inputmode: "numeric" });
    const select = (entries) =>
      h(
        "select",
        {},
        entries.map(([value, text]) => h("option", { value }, text)),
      );
    const nearModes = Object.keys(NEAR).filter((mode) => this.allows(mode));
    const controls = {
      meaning: h("input", { type: "search", placeholder: "a small boat moved by oars" }),
      words: h("input", { type: "search", placeholder: "rowing boat" }),
      vector: h("textarea", { rows: 4, spellcheck: "false", placeholder: "[0.12, -0.03, …]" }),
      rowId: h("input", { inputmode: "numeric", value: "0", spellcheck: "false" }),
      near: select(nearModes.map((mode) => [mode, NEAR[mode]])),
      vectorColumn: select(this.vectors.map((each) => [each.path, `${each.path} (${each.type})`])),
      textColumn: select([
        ["", "all with a text index"],
        ...this.texts.map(({ path }) => [path, path]),
      ]),
      filter: h("textarea", { rows: 1, spellcheck: "false", placeholder: "none" }),
      k: number(1),
      nprobes: number(1),
      refine: number(1),
      ef: number(1),
      metric: select([["", "default"], ...METRICS.map((each) => [each, each])]),
      bypass: h("input", { type: "checkbox" }),
      fast: h("input", { type: "checkbox" }),
    };
    controls.k.value = "10";
    controls.textColumn.value = this.defaultTextColumn();
    controls.near.addEventListener("change", () => this.showAsk());
    return controls;
  }

  /** Without a text index, words are looked for in the last text column: the longest texts, mostly. */
  defaultTextColumn() {
    if (this.context.hasTextIndex || this.texts.length === 0) return "";
    return (this.texts.findLast((each) => each.depth === 0) ?? this.texts[0]).path;
  }

  modeSwitch() {
    const name = freshId("mode");
    const choices = this.modes.map(([mode, title]) => {
      const radio = h("input", {
        type: "radio",
        name,
        value: mode,
        on: { change: () => this.choose(mode) },
      });
      return h("label", { class: "mode" }, radio, h("span", {}, title));
    });
    return h(
      "fieldset",
      { class: "modes" },
      h("legend", { class: "hidden" }, "Search by"),
      choices,
    );
  }

  choose(mode) {
    this.mode = mode;
    this.element.querySelector(`.modes input[value="${mode}"]`).checked = true;
    this.showAsk();
  }

  showAsk() {
    const near = this.mode === "hybrid" ? this.controls.near.value : this.mode;
    const { controls } = this;
    const isVector = near in NEAR;
    replace(
      this.ask,
      this.mode === "words" || this.mode === "hybrid" ? this.wordFields() : null,
      this.mode === "hybrid" ? field("Near to", controls.near) : null,
      this.mode === "meaning"
        ? field("Text, searched by its meaning", controls.meaning, this.modelHint())
        : null,
      near === "vector" ? field("Vector", controls.vector) : null,
      near === "row" ? field("Neighbours of the row with id", controls.rowId) : null,
      isVector && near !== "meaning" && this.vectors.length > 1
        ? field("In column", controls.vectorColumn)
        : null,
    );
    for (const each of this.element.querySelectorAll(".of-vectors")) each.hidden = !isVector;
  }

  wordFields() {
    return [field("Words", this.controls.words), field("In column", this.controls.textColumn)];
  }

  modelHint() {
    const [{ model, column }] = this.context.models;
    return `${model} makes a vector of it, to compare with “${column}”.`;
  }

  filterField() {
    const { filter } = this.controls;
    const wrapped = field("Filter", filter);
    wrapped.append(completeColumns(filter, this.context.columns));
    return wrapped;
  }

  numbers() {
    const { controls } = this;
    controls.nprobes.placeholder = "auto";
    controls.refine.placeholder = "none";
    const ofVectors = (element) => {
      element.classList.add("of-vectors");
      return element;
    };
    return h(
      "div",
      { class: "row" },
      field("Rows (k)", controls.k),
      ofVectors(field("Probes", controls.nprobes)),
      ofVectors(field("Refine", controls.refine)),
    );
  }

  more() {
    const { controls } = this;
    controls.ef.placeholder = "auto";
    const check = (control, text) => h("label", { class: "check" }, control, text);
    return h(
      "details",
      { class: "more" },
      h("summary", {}, "Columns and options"),
      this.columnChoice(),
      h(
        "div",
        { class: "row of-vectors" },
        field("Distance", controls.metric),
        field("ef (graphs)", controls.ef),
      ),
      check(controls.bypass, "Use no index: exact"),
      check(controls.fast, "Indexed rows only"),
    );
  }

  columnChoice() {
    this.columnBoxes = this.context.columns
      .filter((each) => each.depth === 0)
      .map(({ name, dimension, type }) => {
        // Answers call columns as they were asked for: by their bare names.
        const box = h("input", { type: "checkbox", value: name });
        box.checked = dimension === null && !type.includes("binary");
        return box;
      });
    return h(
      "fieldset",
      { class: "columns" },
      h("legend", {}, "Columns to show"),
      this.columnBoxes.map((box) => h("label", { class: "check" }, box, box.value)),
    );
  }

  values() {
    const { controls } = this;
    return {
      vectorColumn: this.vectorColumn(),
      words: this.mode === "words" || this.mode === "hybrid" ? controls.words.value : null,
      textColumn: controls.textColumn.value,
      filter: controls.filter.value.trim(),
      columns: this.columnBoxes.filter((box) => box.checked).map((box) => box.value),
      k: numberOf(controls.k) ?? 10,
      nprobes: numberOf(controls.nprobes),
      refine: numberOf(controls.refine),
      ef: numberOf(controls.ef),
      metric: controls.metric.value,
      bypass: controls.bypass.checked,
      fast: controls.fast.checked,
      version: this.context.version,
    };
  }

  vectorColumn() {
    if (this.mode === "meaning" || this.isMeaningToo()) return this.context.models[0].column;
    return this.vectors.length > 1 ? this.controls.vectorColumn.value : "";
  }

  isMeaningToo() {
    return this.mode === "hybrid" && this.controls.near.value === "meaning";
  }

  async near(kind) {
    const { controls, context } = this;
    if (kind === "vector") return { vector: parseVector(controls.vector.value) };
    if (kind === "row") return { row_id: parseRowId(controls.rowId.value) };
    if (kind !== "meaning") return {};
    const text = (this.mode === "hybrid" ? controls.words : controls.meaning).value;
    const [{ column }] = context.models;
    const { vector } = await post(context.path("embed"), { text, column });
    return { vector };
  }

  submit(event, run) {
    event.preventDefault();
    run();
  }
}

function numberOf(control) {
  return control.value === "" ? null : Number(control.value);
}
