// Every read of the unmodified Node client against a running service; prints what it found as JSON.
//
//   node reads.js URL     with NODE_PATH leading to the installed packages

const lancedb = require("@lancedb/lancedb");

const [url, vectorText] = process.argv.slice(2);
const vector = JSON.parse(vectorText);

async function ids(query) {
  const rows = await query.toArray();
  return rows.map((row) => Number(row.id));
}

async function refusal(action) {
  try {
    await action();
    return null;
  } catch (error) {
    return String(error.message ?? error);
  }
}

async function main() {
  const options = { apiKey: "k", region: "us-east-1", hostOverride: url };
  const db = await lancedb.connect("db://mydb", options);
  const found = {};
  found.tables = await db.tableNames();
  const table = await db.openTable("t1");
  found.columns = (await table.schema()).fields.map((field) => field.name);
  found.version = await table.version();
  found.rows = await table.countRows();
  found.filtered = await table.countRows("id < 10");

  const exact = () => table.search(vector).bypassVectorIndex();
  found.exact = await ids(exact().limit(5));
  found.page = await ids(exact().limit(2).offset(3));
  found.selected = Object.keys((await exact().select(["price", "id"]).limit(1).toArray())[0].toJSON());
  found.computed = (await exact().select({ twice: "id * 2" }).limit(1).toArray()).map((row) => Number(row.twice));
  found.indexed = await ids(table.search(vector).nprobes(4).refineFactor(20).limit(5));
  found.prefiltered = await ids(exact().where("id >= 500").limit(5));
  found.postfiltered = await ids(exact().where("id >= 500").postfilter().limit(5));
  found.cosine = await ids(table.vectorSearch(vector).distanceType("cosine").bypassVectorIndex().limit(3));
  found.ranged = (await ids(exact().distanceRange(0.0, 0.5).limit(50))).length;
  found.batch = (await table.vectorSearch(vector).addQueryVector(vector).bypassVectorIndex().limit(2).toArray()).map((row) => [row.query_index, Number(row.id)]);
  found.rowIds = (await table.query().where("id IN (7, 8)").withRowId().limit(5).toArray()).map((row) => String(row._rowid));
  found.byRowId = await ids(table.takeRowIds(found.rowIds.map(BigInt)));
  found.byOffset = await ids(table.takeOffsets([2, 60]));
  found.plain = await ids(table.query().where("id IN (3, 49, 50)").limit(10));
  found.everything = (await ids(table.query().select(["id"]))).length;

  found.words = (await ids(table.search("newt", "fts", "text").limit(5000))).length;
  found.anyColumn = (await ids(table.search("newt", "fts").limit(5000))).length;
  const phrase = new lancedb.PhraseQuery("swims north", "text");
  found.phrase = (await ids(table.query().fullTextSearch(phrase).limit(5000))).length;
  const both = new lancedb.BooleanQuery([
    [lancedb.Occur.Must, new lancedb.MatchQuery("newt", "text")],
    [lancedb.Occur.MustNot, new lancedb.MatchQuery("north", "text")],
  ]);
  found.boolean = (await ids(table.query().fullTextSearch(both).limit(5000))).length;
  const many = new lancedb.MultiMatchQuery("newt", ["text"]);
  found.multiMatch = (await ids(table.query().fullTextSearch(many).limit(5000))).length;
  found.hybrid = (await ids(table.query().nearestTo(vector).fullTextSearch("newt", { columns: "text" }).limit(5))).length;

  found.explained = await table.search(vector).limit(2).explainPlan(true);
  found.analyzed = await table.search(vector).limit(2).analyzePlan();
  found.indices = Object.fromEntries((await table.listIndices()).map((index) => [index.name, index.indexType]));
  found.indexStats = await table.indexStats("vec_idx");
  found.noIndex = (await table.indexStats("nope")) ?? null;
  await table.prewarmIndex("vec_idx");
  await table.prewarmData(["vec"]);
  await table.prewarmData();
  found.stats = await table.stats();
  found.versions = (await table.listVersions()).map((each) => each.version);
  const tags = await table.tags();
  found.tags = Object.fromEntries(Object.entries(await tags.list()).map(([name, tag]) => [name, tag.version]));
  found.tag = await tags.getVersion("first");
  await table.checkout("first");
  found.oldRows = await table.countRows();
  await table.checkoutLatest();
  found.newRows = await table.countRows();
  const branches = await table.branches();
  found.branches = Object.keys(await branches.list());
  found.branchRows = await (await branches.checkout("dev")).countRows();

  found.noTable = await refusal(() => db.openTable("nope"));
  found.badFilter = await refusal(() => table.countRows("nope > 1"));
  found.badColumn = await refusal(() => table.search(vector).select(["nope"]).limit(1).toArray());
  found.noVersion = await refusal(() => table.checkout(99));

  const plain = (_, value) => (typeof value === "bigint" ? Number(value) : value);
  console.log(JSON.stringify(found, plain));
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
