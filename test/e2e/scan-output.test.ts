import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { run } from "../../lab/command.ts";
import { until } from "../../lab/poll.ts";
import type { NodeReport, ReportedFinding } from "../../src/report/node-report.ts";
import { openCri } from "../../src/runtime/cri.ts";
import { classesOf, GUARD_MS, problemsOf, reportOf, simulatedNode, UNGHOST, unghost } from "./unghost.ts";

const ESCAPE = "\u001b";

/** A node that lost power with some pods, one of which had finished before. */
async function crashedNode() {
  const node = await simulatedNode();
  node.addSandboxes(3, { state: "ready" });
  node.addSandboxes(1, { state: "finished", namePrefix: "job" });
  await node.powerCut();
  return node;
}

function withoutSince({ since: _since, ...finding }: ReportedFinding): ReportedFinding {
  return finding;
}

describe("formats", () => {
  test("YAML has the same content as JSON", async () => {
    const node = await crashedNode();

    const json = await unghost(["scan", "-o", "json", ...node.where]);
    const yaml = await unghost(["scan", "-o", "yaml", ...node.where]);

    expect(yaml.code).toBe(1);
    const report = reportOf({ ...yaml, stdout: JSON.stringify(parse(yaml.stdout)) });
    // Two scans: the boot time is computed from the time of the scan, and dead sandboxes are dated by it.
    const { observedAt, boot } = report;
    const undated = (of: NodeReport) => ({ ...of, observedAt, boot, findings: of.findings.map(withoutSince) });
    expect(undated(reportOf(json))).toEqual(undated(report));
    expect(report.findings.every(({ since }) => since !== undefined)).toBe(true);
  });

  test("only the requested classes are findings", async () => {
    const node = await crashedNode();

    const ran = await unghost(["scan", "-o", "json", ...node.where, "--skip", "dead-after-crash"]);

    const report = reportOf(ran);
    expect(classesOf(report)).toEqual([]);
    expect(report.kept).toHaveLength(4);
  });
});

describe("the table", () => {
  test("has the verdict, one line per ghost, kept sandboxes and the next command, in at most 10 lines", async () => {
    const node = await crashedNode();

    const { code, stdout } = await unghost(["scan", "--node", "edge-7", ...node.where]);

    expect(code).toBe(1);
    expect(stdout).toMatch(/^GHOSTS {2}3 ghosts on edge-7 · 3 pods blocked · containerd /);
    expect(stdout.trimEnd().split("\n").length, stdout).toBeLessThanOrEqual(10);
    const rows = [...stdout.matchAll(/^warn {2}(default\/pod-\d) +dead-after-crash +\d+s +pod start +auto$/gm)];
    expect(rows.map(([, pod]) => pod)).toEqual(["default/pod-0", "default/pod-1", "default/pod-2"]);
    expect(stdout).toMatch(
      /1 kept on purpose \(finished pod\)\.\s+Next: unghost heal --node edge-7 --host-root \S+ --dry-run/,
    );
  });

  test("shows what is blocked, why, and the evidence with -v", async () => {
    const node = await crashedNode();

    const { stdout } = await unghost(["scan", "-v", ...node.where]);

    const order = [
      "GHOSTS",
      "SEV",
      "All 3:",
      "Why:",
      "cri:",
      "blocks pod default/pod-0",
      "unghost heal runs:",
      "Kept on purpose (1)",
    ];
    const places = order.map((text) => stdout.indexOf(text));
    expect(places).not.toContain(-1);
    expect(places).toEqual(places.toSorted((one, other) => one - other));
  });

  test("is grouped for 500 ghosts, and complete with --all", async () => {
    const node = await simulatedNode();
    node.addSandboxes(500, { state: "ready" });
    await node.powerCut();
    // The simulated runtime shares the test's process, which may be starved.
    const where = [...node.where, "--timeout", "60s"];

    const grouped = await unghost(["scan", ...where]);
    const all = await unghost(["scan", "--all", "--no-headers", ...where]);
    const names = await unghost(["scan", "-o", "name", ...where]);

    expect(grouped.stdout).toMatch(/^GHOSTS {2}500 ghosts on /);
    expect(grouped.stdout.trimEnd().split("\n").length, grouped.stdout).toBeLessThanOrEqual(30);
    expect(all.stdout.match(/^warn /gm)).toHaveLength(500);
    expect(all.stdout).not.toContain("SEV");
    expect(names.stdout.match(/^dead-after-crash\/[0-9a-f]{64}$/gm)).toHaveLength(500);
    expect([grouped.code, all.code, names.code]).toEqual([1, 1, 1]);
  });

  test("is empty with -q except for what could not be read", async () => {
    const node = await crashedNode();

    const ghosts = await unghost(["scan", "-q", ...node.where]);
    const unknown = await unghost(["scan", "-q", "--runtime-endpoint", "unix:///nowhere.sock", ...node.where]);

    expect([ghosts.code, ghosts.stdout, ghosts.stderr]).toEqual([1, "", ""]);
    expect([unknown.code, unknown.stdout]).toEqual([2, ""]);
    expect(unknown.stderr).toContain("Could not read\n  cri: ");
  });

  test("is appended with --watch when it has changed", async () => {
    const node = await crashedNode();
    const lines: string[] = [];
    const watching = spawn(UNGHOST, ["scan", "--watch", "--interval", "200ms", ...node.where], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void watching.kill("SIGKILL"));
    watching.stdout.on("data", (chunk: Buffer) => lines.push(...chunk.toString().split("\n")));

    await until("the first report", GUARD_MS, () => lines.find((line) => line.startsWith("GHOSTS  3 ghosts")));
    node.addSandboxes(2, { state: "ready", namePrefix: "more" });
    await node.powerCut();
    await until("the next report", GUARD_MS, () => lines.find((line) => line.startsWith("GHOSTS  5 ghosts")));

    expect(lines.join("\n")).not.toContain(ESCAPE);
  });

  test("has no escape codes in a pipe", async () => {
    const node = await crashedNode();

    const { stdout } = await unghost(["scan", ...node.where]);

    expect(stdout).not.toContain(ESCAPE);
  });

  test.each([
    ["has colours on a terminal", {}, true],
    ["has none on a terminal with NO_COLOR", { NO_COLOR: "1" }, false],
    ["has none on a dumb terminal", { TERM: "dumb" }, false],
  ])("%s", async (_, env, coloured) => {
    const node = await crashedNode();
    const command = [UNGHOST, "scan", ...node.where].join(" ");

    const ran = await run(["script", "-qec", command, "/dev/null"], {
      env: { PATH: "/usr/bin:/bin", TERM: "xterm", ...env },
      timeoutMs: GUARD_MS,
    });

    expect(ran.stdout).toContain("GHOSTS");
    expect(ran.stdout.includes(ESCAPE)).toBe(coloured);
  });

  test.each([[40], [60], [200]])("fits a terminal of %i columns, without breaking words", async (columns) => {
    const node = await crashedNode();

    const { stdout } = await unghost(["scan", ...node.where], { env: { COLUMNS: String(columns) } });

    for (const line of stdout.split("\n")) {
      // A command that can be pasted is not broken.
      if (line.trim().includes(" ") && !line.includes("--host-root"))
        expect(line.length, line).toBeLessThanOrEqual(columns);
    }
  });
});

describe("hostile names", () => {
  test("are escaped on the terminal", async () => {
    const node = await simulatedNode();
    const name = "a\u001b[2J\u009b31m\u202e\u{e0041}\r\nHEALTHY\u007f";
    const cri = openCri(node.socket);
    onTestFinished(() => cri.close());
    await cri.runPodSandbox({ metadata: { name, namespace: name, uid: name, attempt: 0 } }, { timeoutMs: GUARD_MS });
    await node.powerCut();

    const table = await unghost(["scan", ...node.where]);
    const json = await unghost(["scan", "-o", "json", ...node.where]);
    const yaml = await unghost(["scan", "-o", "yaml", ...node.where]);

    expect(table.code).toBe(1);
    for (const { stdout } of [table, json, yaml]) expect(stdout).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u);
    expect(table.stdout).not.toMatch(/^HEALTHY/m);
    const report = reportOf(json);
    expect(report.findings[0]?.subject.pod).toMatchObject({ namespace: name, name, uid: name });
    expect(parse(yaml.stdout)).toMatchObject({ findings: report.findings.map(withoutSince) });
  });

  test("of files are reported and skipped, and hide no ghost", async () => {
    const node = await crashedNode();
    const results = join(node.root, "var/lib/cni/results");
    writeFileSync(Buffer.concat([Buffer.from(`${results}/not-utf8-`), Buffer.from([0xff, 0xfe])]), "{}");
    writeFileSync(join(results, "line\nbreak"), "{}");
    writeFileSync(join(results, `net-${"A".repeat(64)}-eth0`), "{}");
    mkdirSync(join(results, `net-${randomBytes(32).toString("hex")}-eth0`));

    const ran = await unghost(["scan", "-o", "json", ...node.where]);

    const report = reportOf(ran);
    expect(ran.code).toBe(1);
    expect(classesOf(report).filter((id) => id === "dead-after-crash")).toHaveLength(3);
    expect(problemsOf(report).filter((text) => text.startsWith("cni results:"))).toHaveLength(4);
  });

  test("of 20,000 orphaned cache files are counted, not listed", async () => {
    const node = await simulatedNode();
    for (let index = 0; index < 20_000; index++) {
      const id = randomBytes(32).toString("hex");
      const path = join(node.root, `var/lib/cni/results/cbr0-${id}-eth0`);
      writeFileSync(path, JSON.stringify({ kind: "cniCacheV1", containerId: id, networkName: "cbr0", ifName: "eth0" }));
    }

    const scan = ["scan", "--min-age", "0s", ...node.where];
    const json = await unghost([...scan, "-o", "json"]);
    const table = await unghost(scan);

    expect(json.code).toBe(1);
    const found = classesOf(reportOf(json));
    expect(found).toHaveLength(20_000);
    expect(new Set(found)).toEqual(new Set(["cni-cache-files-orphaned"]));
    expect(table.stdout).toContain("20000 leaks");
    expect(table.stdout.trimEnd().split("\n").length, table.stdout).toBeLessThanOrEqual(30);
  });
});
