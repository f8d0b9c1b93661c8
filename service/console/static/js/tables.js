// The list of tables: namespaces open on demand.

import { getAll, pathOf } from "./api.js";
import { h, replace } from "./dom.js";
import { problem } from "./problem.js";

/** Shows tables and namespaces in an element; `choose` is called with the parts of a name. */
export class TableList {
  constructor(element, search, choose) {
    this.element = element;
    this.choose = choose;
    search.addEventListener("input", () => this.find(search.value));
  }

  /** Reads the root anew and returns the names of its tables. */
  async load() {
    try {
      const { list, tables } = await this.read([]);
      replace(this.element, list);
      // With several databases there are no tables at the root.
      if (tables.length === 0) this.element.querySelector("details")?.setAttribute("open", "");
      return tables;
    } catch (error) {
      replace(this.element, problem(error));
      throw error;
    }
  }

  /** Marks the table in view. */
  mark(parts) {
    const name = JSON.stringify(parts);
    for (const each of this.element.querySelectorAll("button[data-table]"))
      each.setAttribute("aria-current", String(each.dataset.table === name));
  }

  /** Leaves the tables whose names hold a text. */
  find(text) {
    for (const each of this.element.querySelectorAll("button[data-table]"))
      each.parentElement.hidden = !each.textContent.toLowerCase().includes(text.toLowerCase());
  }

  async read(namespace) {
    const [tables, namespaces] = await Promise.all([
      getAll(pathOf("namespace", namespace, "table/list"), "tables"),
      getAll(pathOf("namespace", namespace, "list"), "namespaces"),
    ]);
    if (tables.length + namespaces.length === 0)
      return { tables, list: h("p", { class: "muted" }, "Nothing here.") };
    const entries = [
      ...namespaces.map((name) => this.folder([...namespace, name])),
      ...tables.map((name) => this.entry([...namespace, name])),
    ];
    return { tables, list: h("ul", { class: "tree" }, entries) };
  }

  entry(parts) {
    const choose = () => this.choose(parts);
    const button = h(
      "button",
      { type: "button", "data-table": JSON.stringify(parts), on: { click: choose } },
      parts.at(-1),
    );
    return h("li", {}, button);
  }

  folder(parts) {
    const inside = h("div", {});
    const open = async ({ target }) => {
      if (!target.open || inside.childElementCount > 0) return;
      try {
        replace(inside, (await this.read(parts)).list);
      } catch (error) {
        replace(inside, problem(error));
      }
    };
    const name = h("summary", {}, parts.at(-1));
    return h("li", {}, h("details", { on: { toggle: open } }, name, inside));
  }
}
