// The page: which table is in view, the key, the colours, and whether the service is ready.

import { get, Problem, storedKey, storeKey } from "./api.js";
import { cacheView } from "./cache.js";
import { h, replace } from "./dom.js";
import { problem } from "./problem.js";
import { TableList } from "./tables.js";
import { TableView } from "./table_view.js";
import { followTheme } from "./theme.js";

const WAIT_MS = 1500;
const UNAUTHENTICATED = 401;
const CACHE = "cache";
const KEY_HINT =
  "It is kept in this tab only, and sent with each request: a key as x-api-key, a token as bearer.";

const byId = (id) => document.getElementById(id);
const content = byId("content");
let view = null;

const list = new TableList(byId("tables"), byId("find"), (parts) => go({ table: parts }));

function start() {
  followTheme(byId("theme"));
  byId("key").addEventListener("click", () => askForKey());
  byId("key-dialog").addEventListener("close", takeKey);
  byId("server").addEventListener("click", () => go({ view: CACHE }));
  // The address may be another one by now: tabs write theirs into it.
  window.addEventListener("hashchange", ({ newURL }) => show(place(new URL(newURL).hash)));
  // On a narrow screen the list would stand before everything else.
  byId("browser").open = window.innerWidth > 760;
  watchReadiness();
  load();
}

async function load() {
  showKeyState();
  try {
    const tables = await list.load();
    const wanted = place();
    if (wanted.table !== null || wanted.view === CACHE) show(wanted);
    else if (tables.length > 0) go({ table: [tables[0]] });
    else replace(content, h("p", { class: "empty" }, "Choose a table."));
  } catch (error) {
    replace(content, problem(error));
    if (error instanceof Problem && error.status === UNAUTHENTICATED) askForKey(error);
  }
}

/** Returns what the address asks for. */
function place(hash = location.hash) {
  const asked = new URLSearchParams(hash.slice(1));
  const version = asked.get("version");
  return {
    table: asked.has("table") ? JSON.parse(asked.get("table")) : null,
    view: asked.get("view") ?? "query",
    version: version === null ? null : Number(version),
  };
}

function addressOf({ table = null, view: shown = "query", version = null }) {
  const asked = new URLSearchParams();
  if (table !== null) asked.set("table", JSON.stringify(table));
  if (shown !== "query") asked.set("view", shown);
  if (version !== null) asked.set("version", String(version));
  return `#${asked}`;
}

/** Goes to a place: the address changes, and the page follows it. */
function go(where) {
  const address = addressOf(where);
  if (location.hash === address) show(place());
  else location.hash = address;
}

function show({ table, view: shown, version }) {
  const isOfCache = shown === CACHE && table === null;
  if (table === null && !isOfCache) return; // a jump within the page
  view?.leave?.();
  view = null;
  if (isOfCache) {
    list.mark(null);
    document.title = "Cache · lance-serve";
    const cache = cacheView();
    replace(content, cache.element);
    cache.show();
    return;
  }
  document.title = `${table.at(-1)} · lance-serve`;
  list.mark(table);
  view = new TableView(content, table, (tab, pinned) =>
    history.replaceState(null, "", addressOf({ table, view: tab, version: pinned })),
  );
  view.open(version, shown);
}

function askForKey(error = null) {
  byId("key-why").textContent = error === null ? KEY_HINT : error.message;
  byId("key-text").value = "";
  byId("key-dialog").returnValue = "cancel";
  byId("key-dialog").showModal();
}

function takeKey() {
  const { returnValue } = byId("key-dialog");
  const given = byId("key-text").value;
  byId("key-text").value = "";
  if (returnValue === "forget") storeKey(null);
  else if (returnValue === "use" && given !== "") storeKey(given);
  else return;
  load();
}

function showKeyState() {
  byId("key").textContent = storedKey() === null ? "API key" : "API key ✓";
  byId("key").title = storedKey() === null ? "No key is sent" : "A key is sent with each request";
}

async function watchReadiness() {
  const pill = byId("status");
  try {
    await get("ready");
    pill.className = "pill good";
    pill.textContent = "ready";
    const { version } = await get("");
    pill.textContent = `ready · ${version}`;
    return;
  } catch (error) {
    pill.className = "pill gap";
    pill.textContent = error.status === 503 ? "loading kernels" : "no answer";
    pill.title = error.message;
  }
  setTimeout(watchReadiness, WAIT_MS);
}

start();
