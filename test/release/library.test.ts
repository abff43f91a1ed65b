import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { run, runOrThrow } from "../../lab/command.ts";
import manifest from "../../package.json" with { type: "json" };

const INSTALL_MS = 300_000;

const PROGRAM = `import { readFileSync } from "node:fs";
import { explain, failureClasses, type NodeReport, parseNodeReport } from "unghost";
import schema from "unghost/schema/node-report.v1.json" with { type: "json" };

const [first] = explain('failed to reserve sandbox name "web_default_1_0": name "web_default_1_0" is reserved for "abc"');
const title: string = first?.info.title ?? "";
function classesOf(report: NodeReport): string[] {
  return report.findings.map((finding) => finding.class);
}
let refused = false;
try {
  parseNodeReport(readFileSync("package.json", "utf8"));
} catch {
  refused = true;
}
console.log(JSON.stringify({ title, classes: failureClasses.length, schema: schema.$schema, refused, kind: typeof classesOf }));
`;

test("a project can install the library and use it with its types", async () => {
  const dir = await mkdtemp(join(tmpdir(), "unghost-library-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  await writeFile(join(dir, "package.json"), JSON.stringify({ name: "scratch", private: true, type: "module" }));
  await writeFile(join(dir, "main.ts"), PROGRAM);
  await writeFile(join(dir, "wrong.ts"), 'import { explain } from "unghost";\nexplain(42);\n');
  const archive = resolve(`dist/unghost-${manifest.version}.tgz`);
  await runOrThrow(["npm", "install", "--no-audit", "--no-fund", archive], { cwd: dir, timeoutMs: INSTALL_MS });

  const { stdout } = await runOrThrow([process.execPath, "main.ts"], { cwd: dir });
  const types = [
    "--ignoreConfig",
    "--noEmit",
    "--strict",
    "--module",
    "NodeNext",
    "--target",
    "ES2024",
    "--types",
    "node",
  ];
  const tsc = [
    resolve("node_modules/.bin/tsc"),
    ...types,
    "--typeRoots",
    resolve("node_modules/@types"),
    "--resolveJsonModule",
  ];
  const right = await run([...tsc, "main.ts"], { cwd: dir });
  const wrong = await run([...tsc, "wrong.ts"], { cwd: dir });

  expect(JSON.parse(stdout)).toMatchObject({ title: expect.stringMatching(/./), refused: true, kind: "function" });
  expect((JSON.parse(stdout) as { classes: number }).classes).toBeGreaterThan(50);
  expect([right.code, right.stdout]).toEqual([0, ""]);
  expect([wrong.code, wrong.stdout]).not.toEqual([0, ""]);
  expect(wrong.stdout).toContain("number");
});
