// From what the form holds to the body of a request: pure functions.

/** Returns the numbers of a pasted vector: a JSON list, numbers with commas or spaces, or a whole body. */
export function parseVector(text) {
  const trimmed = text.trim();
  if (trimmed === "") throw new Error("Paste the numbers of a vector.");
  if (trimmed.startsWith("{")) return vectorOfBody(trimmed);
  const words = trimmed
    .replaceAll(/[[\](),;]/g, " ")
    .split(/\s+/)
    .filter((word) => word !== "");
  return words.map((word) => {
    const value = Number(word);
    if (!Number.isFinite(value)) throw new Error(`The vector holds “${word}”, which is no number.`);
    return value;
  });
}

function vectorOfBody(text) {
  let body;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw new Error(`This is no JSON: ${error.message}`);
  }
  if (!Array.isArray(body.vector)) throw new Error("The object has no list named “vector”.");
  return body.vector;
}

/** Returns a row id as a number that keeps all digits. */
export function parseRowId(text) {
  if (!/^\d+$/.test(text.trim())) throw new Error("A row id is a whole number.");
  const value = BigInt(text.trim());
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

/**
 * Returns the body of a query.
 *
 * `near` is {vector} or {row_id} or empty, `words` what is looked for in texts, all others are
 * texts and choices of the form; what is left open is left out.
 */
export function bodyOf(near, form) {
  const body = { ...near };
  const isVector = "vector" in near || "row_id" in near;
  if (isVector && form.vectorColumn) body.vector_column = form.vectorColumn;
  if (form.words !== null) body.full_text_query = textQuery(form);
  if (form.filter !== "") body.filter = form.filter;
  body.columns = form.columns;
  body.k = form.k;
  body.with_row_id = true;
  if (isVector) Object.assign(body, searchOptions(form));
  if (form.bypass) body.bypass_vector_index = true;
  if (form.fast) body.fast_search = true;
  if (form.version !== null) body.version = form.version;
  return body;
}

function textQuery({ words, textColumn }) {
  return textColumn === "" ? words : { query: words, columns: [textColumn] };
}

function searchOptions({ nprobes, refine, ef, metric }) {
  const found = {};
  if (nprobes !== null) found.nprobes = nprobes;
  if (refine !== null) found.refine_factor = refine;
  if (ef !== null) found.ef = ef;
  if (metric !== "") found.distance_type = metric;
  return found;
}
