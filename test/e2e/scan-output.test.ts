import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { run } from "../../lab/command.ts";
import { openCri } from "../../src/runtime/cri.ts";
import { classesOf, GUARD_MS, problemsOf, reportOf, simulatedNode, UNGHOST, unghost } from "./unghost.ts";

const ESCAPE = "\u001b";

/** A node that lost power under some pods, one of which had finished before. */
async function crashedNode() {
  const node = await simulatedNode();
  node.addSandboxes(3, { state: "ready" });
  node.addSandboxes(1, { state: "finished", namePrefix: "job" });
  await node.powerCut();
  return node;
}

describe("formats", () => {
  test("YAML says the same as JSON", async () => {
    const node = await crashedNode();

    const json = await unghost(["scan", "-o", "json", ...node.where]);
    const yaml = await unghost(["scan", "-o", "yaml", ...node.where]);

    expect(yaml.code).toBe(1);
    const report = reportOf({ ...yaml, stdout: JSON.stringify(parse(yaml.stdout)) });
    // The two looked at the node at different moments, and a boot's start is reckoned from the moment.
    const { observedAt, boot } = report;
    expect({ ...reportOf(json), observedAt, boot }).toEqual(report);
  });

  test("only the classes asked for are findings; what others explain is left alone", async () => {
    const node = await crashedNode();

    const ran = await unghost(["scan", "-o", "json", ...node.where, "--skip", "dead-after-crash"]);

    const report = reportOf(ran);
    expect(classesOf(report)).toEqual([]);
    expect(report.kept).toHaveLength(4);
  });
});

describe("the table", () => {
  test("starts with the verdict, then what is blocked, then why", async () => {
    const node = await crashedNode();

    const { code, stdout } = await unghost(["scan", ...node.where]);

    expect(code).toBe(1);
    expect(stdout).toMatch(/^GHOSTS {2}3 findings on /);
    const order = [
      "GHOSTS",
      "dead-after-crash",
      "blocks pod default/pod-0",
      "Why:",
      "unghost would:",
      "Left alone (1)",
    ];
    const places = order.map((text) => stdout.indexOf(text));
    expect(places).not.toContain(-1);
    expect(places).toEqual(places.toSorted((one, other) => one - other));
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

  test.each([[40], [60], [200]])("fits a terminal of %i columns, whole words apart", async (columns) => {
    const node = await crashedNode();

    const { stdout } = await unghost(["scan", ...node.where], { env: { COLUMNS: String(columns) } });

    for (const line of stdout.split("\n")) {
      if (line.trim().includes(" ")) expect(line.length, line).toBeLessThanOrEqual(columns);
    }
  });
});

describe("hostile surroundings", () => {
  test("names of others never reach the terminal as they are", async () => {
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
    expect(parse(yaml.stdout)).toMatchObject({ findings: report.findings });
  });

  test("odd file names are reported and skipped, and hide no ghost", async () => {
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

  test("20,000 orphaned cache files are counted, not a flood", async () => {
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
    expect(table.stdout).toContain("and 19990 more");
    expect(table.stdout.split("\n").length).toBeLessThan(60);
  });
});
