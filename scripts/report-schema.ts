/** Publishes the JSON Schema of the report; with --check it only says whether the published one is current. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { toJsonSchema } from "@valibot/to-json-schema";
import { NodeReportSchema } from "../src/report/node-report.ts";

const PATH = "docs/schema/node-report.v1.json";

const schema = {
  $id: "https://unghost.dev/schema/node-report.v1.json",
  title: "NodeReport",
  ...toJsonSchema(NodeReportSchema, { target: "draft-2020-12" }),
};
const text = `${JSON.stringify(schema, undefined, 2)}\n`;

if (process.argv.includes("--check")) {
  if (readFileSync(PATH, "utf8") !== text) {
    console.error(`${PATH} is not current: run \`make docs\` and commit it`);
    process.exitCode = 1;
  }
} else {
  mkdirSync("docs/schema", { recursive: true });
  writeFileSync(PATH, text);
}
