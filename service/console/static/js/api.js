// Requests to the service that this page came from.

import { parseJson, toJson } from "./json.js";

const KEY = "lance-serve.key";
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;
const ROOT = new URL("../", document.baseURI);
const DELIMITER = "$";
const OTHER_DELIMITER = "\u001f";

/** An error answer, in the words of the server. */
export class Problem extends Error {
  constructor(text, { status = 0, title = "No answer", instance = null } = {}) {
    super(text);
    this.status = status;
    this.title = title;
    this.instance = instance;
  }
}

/** Returns the key of this tab, null where there is none. */
export function storedKey() {
  return sessionStorage.getItem(KEY);
}

/** Keeps a key for as long as the tab is open; null forgets it. */
export function storeKey(key) {
  if (key === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, key);
}

/** Returns the header that a key belongs in; what has two dots is a bearer token. */
export function keyHeader(key) {
  const isToken = TOKEN.test(key ?? "");
  return isToken ? { name: "Authorization", prefix: "Bearer " } : { name: "x-api-key", prefix: "" };
}

/** Returns the address of the service without a slash at its end. */
export function serviceAddress() {
  return ROOT.href.replace(/\/$/, "");
}

/** Returns the path of a table or namespace; names that hold the delimiter get another one. */
export function pathOf(kind, parts, rest) {
  const isOdd = parts.some((part) => part.includes(DELIMITER));
  const delimiter = isOdd ? OTHER_DELIMITER : DELIMITER;
  const id = parts.length === 0 ? delimiter : parts.join(delimiter);
  // Paths get into shell commands too, where an apostrophe would end a quoted text.
  const segment = encodeURIComponent(id).replaceAll("%24", DELIMITER).replaceAll("'", "%27");
  const path = `v1/${kind}/${segment}/${rest}`;
  return isOdd ? withParameter(path, "delimiter", delimiter) : path;
}

/** Returns a path with a query parameter more. */
export function withParameter(path, name, value) {
  return `${path}${path.includes("?") ? "&" : "?"}${name}=${encodeURIComponent(value)}`;
}

/** Returns the JSON answer to a GET. */
export function get(path, options = {}) {
  return send("GET", path, undefined, options);
}

/** Returns the JSON answer to a POST. */
export function post(path, body = {}, options = {}) {
  return send("POST", path, toJson(body), options);
}

/** Returns all entries of a listing that comes in pages. */
export async function getAll(path, member, options = {}) {
  const found = [];
  let token = null;
  do {
    const page = await get(
      token === null ? path : withParameter(path, "page_token", token),
      options,
    );
    found.push(...page[member]);
    token = page.page_token || null;
  } while (token !== null);
  return found;
}

async function send(method, path, body, { signal, key = storedKey() } = {}) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const { name, prefix } = keyHeader(key);
  if (key !== null) headers[name] = prefix + key;
  const answer = await ask(new URL(path, ROOT), { method, headers, body, signal });
  const text = await answer.text();
  if (!answer.ok) throw problemOf(answer, text);
  return text === "" ? null : parseJson(text);
}

async function ask(url, options) {
  try {
    return await fetch(url, { ...options, cache: "no-store", credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(`The service did not answer: ${error.message}`);
  }
}

function problemOf(answer, text) {
  try {
    const { error, title, instance } = JSON.parse(text);
    return new Problem(error, { status: answer.status, title, instance });
  } catch {
    return new Problem(text, { status: answer.status, title: answer.statusText });
  }
}
