import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { run } from "../../lab/command.ts";
import { emptyResultCache } from "../../lab/faults/result-cache.ts";
import { runPod } from "../../lab/pods.ts";
import { packed } from "../../src/bundle/tar.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { tempDir } from "../support/temp-dir.ts";
import { peakOf } from "./scan-peak.ts";
import { AT_ONCE, company } from "./scanned-node.ts";
import { reportOf, simulatedNode, UNGHOST, unghost } from "./unghost.ts";

/** Two scans of one node differ in their times. */
function undated({ observedAt: _at, boot: _boot, findings, ...report }: NodeReport) {
  return { ...report, findings: findings.map(({ since: _since, ...finding }) => finding) };
}

function directory(): string {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  return dir.path;
}

const SECRETS = ["hunter2", "cm9ib3Q6aHVudGVyMg", "MIIEpAIBAAKCAQEA7"];

describe.skipIf(NO_REAL_NODE !== undefined)("a bundle of a real node", { timeout: HANG_GUARD_MS }, () => {
  test("is the same scan on another machine, and has no secrets of the node", async () => {
    const node = await start();
    await runPod(node, { name: "web-0", containers: [{ name: "main" }] });
    const torn = await runPod(node, { name: "web-1" });
    await node.powerCut();
    await emptyResultCache(node, torn);
    await node.powerOn();
    await company(node);
    await node.writeFile(
      "/etc/crictl.yaml",
      "runtime-endpoint: unix:///run/containerd/containerd.sock\npassword: hunter2\n",
    );
    await node.writeFile("/etc/cni/net.d/99-other.conf", '{"name":"x","auth":"cm9ib3Q6aHVudGVyMg=="}\n');
    await node.writeFile("/etc/cni/net.d/key.conf", "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7\n");
    const elsewhere = directory();
    const inNode = "/var/lib/node.tar.gz";
    const file = node.path(inNode);

    const live = reportOf(await node.exec([UNGHOST, "scan", ...AT_ONCE, "-o", "json"]));
    const taken = await node.exec([UNGHOST, "bundle", ...AT_ONCE, inNode]);
    const again = await node.exec([UNGHOST, "bundle", ...AT_ONCE, inNode]);
    const offline = await unghost(["scan", "--from", file, "-o", "json"]);
    const listed = await run(["tar", "xzf", file, "-C", elsewhere, "--verbose"]);

    expect([taken.code, taken.stdout]).toEqual([0, ""]);
    expect([again.code, again.stderr]).toEqual([64, expect.stringContaining("it exists already")]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(live.findings).toHaveLength(2);
    expect(undated(reportOf(offline))).toEqual(undated(live));
    expect(offline.stderr).toContain(`A bundle of ${live.node}`);
    const names = listed.stdout.trim().split("\n");
    expect(names).toEqual(
      expect.arrayContaining([
        "manifest.json",
        "snapshot.json",
        "report.json",
        "history.json",
        "config/etc/crictl.yaml",
      ]),
    );
    const everything = names.map((name) => readFileSync(join(elsewhere, name), "utf8")).join("\n");
    expect(SECRETS.filter((secret) => everything.includes(secret))).toEqual([]);

    await node.exec([UNGHOST, "heal", "--yes", ...AT_ONCE]);
    const { entries } = JSON.parse(await node.check([UNGHOST, "history", "-o", "json"]));
    const timeline = await node.check([UNGHOST, "history", entries[0].run]);

    for (const { id } of live.findings) expect(timeline).toContain(`\n${id}\n    because  `);
  });
});

describe("scan --from", () => {
  test("a target and a class can be asked for, and the bundle goes through a pipe", async () => {
    const node = await simulatedNode();
    node.addSandboxes(2, { state: "ready" });
    await node.powerCut();
    const file = join(directory(), "node.tar.gz");
    const script = `"$0" bundle - "$@" > ${file}`;

    const taken = await run(["sh", "-c", script, UNGHOST, "--node", "edge-7", ...node.where]);
    const whole = reportOf(await unghost(["scan", "--from", file, "-o", "json"]));
    const one = await unghost(["scan", "--from", file, "-o", "json", whole.findings[0]?.id ?? ""]);
    const none = await unghost(["scan", "--from", file, "-o", "json", "--skip", "dead-after-crash"]);
    const watched = await unghost(["scan", "--from", file, "--watch"]);
    const missing = await unghost(["scan", "--from", `${file}.not`]);

    expect(taken.code).toBe(0);
    expect([whole.node, whole.findings.length]).toEqual(["edge-7", 2]);
    expect(reportOf(one).findings).toHaveLength(1);
    expect(reportOf(none).findings).toEqual([]);
    expect([watched.code, missing.code]).toEqual([64, 64]);
    expect(missing.stderr).toContain("cannot read");
  });
});

describe("a file that an enemy made", () => {
  const MANY = 15_000_000;
  const MAX_KB = 450 * 1024;
  const FRAME = JSON.stringify({
    apiVersion: "unghost.dev/v1",
    kind: "SavedScan",
    version: "",
    settings: {},
    failedHeals: {},
  });

  test.each([
    ["15 million objects", `[${"{},".repeat(MANY)}{}]`, /has more than \d+ values/],
    ["15 million nested arrays", "[".repeat(MANY) + "]".repeat(MANY), /is nested more than 40 deep/],
  ])("a snapshot of %s is refused before it fills the memory", async (_what, snapshot, expected) => {
    const file = join(directory(), "enemy.tar.gz");
    const text = `${FRAME.slice(0, -1)},"snapshot":${snapshot}}`;
    writeFileSync(file, packed([{ name: "snapshot.json", text }], new Date()));

    const { stdout, stderr, peakKb } = await peakOf(["scan", "--from", file]);

    expect([stdout, stderr]).toEqual(["", expect.stringMatching(expected)]);
    expect(peakKb).toBeLessThan(MAX_KB);
  });

  test.each([
    ["15 million actions", `{"kind":"NodeReport","node":"n","planDigest":"","actions":[${"{},".repeat(MANY)}{}]}`],
    ["15 million nested arrays", "[".repeat(MANY)],
  ])("a plan of %s is refused before it fills the memory", async (_what, plan) => {
    const file = join(directory(), "plan.json");
    writeFileSync(file, plan);
    const { where } = await simulatedNode();

    const { stdout, stderr, peakKb } = await peakOf(["heal", "--yes", "--no-kube", ...where, "--plan", file]);

    expect([stdout, stderr]).toEqual(["", expect.stringContaining("is not a saved plan")]);
    expect(peakKb).toBeLessThan(MAX_KB);
  });
});
