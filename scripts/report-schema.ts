/** Publishes the JSON Schemas of what unghost prints; with --check it only reports whether the published ones are current. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { toJsonSchema } from "@valibot/to-json-schema";
import { DoctorReportSchema } from "../src/doctor/doctor-report.ts";
import { NodeReportSchema } from "../src/report/node-report.ts";

const PUBLISHED = [
  { file: "node-report.v1.json", title: "NodeReport", schema: NodeReportSchema },
  { file: "doctor-report.v1.json", title: "DoctorReport", schema: DoctorReportSchema },
];

mkdirSync("docs/schema", { recursive: true });
for (const { file, title, schema } of PUBLISHED) {
  const path = `docs/schema/${file}`;
  const published = {
    $id: `https://unghost.dev/schema/${file}`,
    title,
    ...toJsonSchema(schema, { target: "draft-2020-12" }),
  };
  const text = `${JSON.stringify(published, undefined, 2)}\n`;
  if (!process.argv.includes("--check")) writeFileSync(path, text);
  else if (readFileSync(path, "utf8") !== text) {
    console.error(`${path} is not current: run \`make docs\` and commit it`);
    process.exitCode = 1;
  }
}
