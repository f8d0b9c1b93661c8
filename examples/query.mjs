// LanceDB's client for JavaScript and TypeScript, against a running lance-serve:
//   npm install --no-save @lancedb/lancedb@0.39.0 && node examples/query.mjs
import { readFileSync } from "node:fs";
import * as lancedb from "@lancedb/lancedb";

const url = process.argv[2] ?? "http://127.0.0.1:8000";
const db = await lancedb.connect("db://demo", { apiKey: "any", hostOverride: url });
const table = await db.openTable("wordnet");
const { vector } = JSON.parse(readFileSync(new URL("query.json", import.meta.url)));
const rows = await table.vectorSearch(vector).select(["id", "title"]).refineFactor(5).limit(3).toArray();
for (const { id, title, _distance } of rows) {
  console.log(_distance.toFixed(3), String(id), title);
}
