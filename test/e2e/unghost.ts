import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { onTestFinished } from "vitest";
import { type CommandOptions, type CommandResult, run } from "../../lab/command.ts";
import { type SimulatedNode, startSimulatedNode } from "../../lab/simulated/node.ts";
import type { NodeReport } from "../../src/report/node-report.ts";

/** The built executable. UNGHOST_BIN overrides it. */
export const UNGHOST = resolve(process.env["UNGHOST_BIN"] ?? "dist/unghost");

/** Only a hang guard: no test measures time with it. */
export const GUARD_MS = 60_000;

const validate = new Ajv2020({ validateFormats: false }).compile<NodeReport>(
  JSON.parse(readFileSync("docs/schema/node-report.v1.json", "utf8")),
);

/** Runs unghost with its own environment. */
export function unghost(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  return run([UNGHOST, ...args], { timeoutMs: GUARD_MS, ...options, env: { PATH: "/usr/bin:/bin", ...options.env } });
}

/** The report in a scan's output, validated against the schema. */
export function reportOf({ stdout, stderr }: CommandResult): NodeReport {
  const report: unknown = JSON.parse(stdout || fail(`nothing on stdout; stderr: ${stderr}`));
  if (validate(report)) return report;
  return fail(`not as published: ${JSON.stringify(validate.errors, undefined, 2)}`);
}

function fail(message: string): never {
  throw new Error(message);
}

/** Only findings about sandboxes, with their pod. */
export function classesOf(report: NodeReport): readonly string[] {
  return report.findings.map((finding) => finding.class);
}

/** Texts of everything that could not be read, with the next step. */
export function problemsOf(report: NodeReport): readonly string[] {
  return report.problems.map(({ source, problem, next }) => `${source}: ${problem} | ${next ?? ""}`);
}

/** A node without root, removed after the test, and the flags to scan it. */
export async function simulatedNode(): Promise<SimulatedNode & { readonly where: readonly string[] }> {
  const node = await startSimulatedNode();
  onTestFinished(() => node.close());
  return { ...node, where: ["--host-root", node.root] };
}
