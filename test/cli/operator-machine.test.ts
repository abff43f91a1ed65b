import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { run } from "../../lab/command.ts";
import { SAVED_SCAN, savedScanDocument } from "../../src/bundle/saved-scan.ts";
import { packed } from "../../src/bundle/tar.ts";
import { whyNotHere } from "../../src/cli/operator-machine.ts";
import {
  agentsTable,
  fleetRig,
  kubeconfigOf,
  NODES_PATH,
  nodesTable,
  PODS_PATH,
  REPORTS_PATH,
  reportObject,
  reportsOf,
} from "../fleet/fleet-rig.ts";
import { NOW, snapshotOf } from "../support/snapshot-builder.ts";

describe("a command on a machine that is no node", () => {
  test.each(["fleet", "explain", "completion", "version", "help"])("%s runs on any", (command) => {
    expect([whyNotHere([command], "darwin"), whyNotHere([command], "win32")]).toEqual([undefined, undefined]);
  });

  test("of a node says so, and what to run instead", () => {
    expect(whyNotHere(["scan", "-v"], "darwin")).toBe(
      "unghost scan runs on a Linux node, and this machine runs macOS. Run it from here: kubectl unghost scan; " +
        "on the node: sudo unghost scan; with a bundle of a node: unghost scan --from FILE",
    );
    expect(whyNotHere(["undo", "x"], "win32")).toBe(
      "unghost undo runs on a Linux node, and this machine runs Windows. Run it on the node: sudo unghost undo",
    );
  });

  test("runs on Linux, with a bundle, and is reported as unknown where it is none", () => {
    expect(whyNotHere(["scan"], "linux")).toBeUndefined();
    expect(whyNotHere(["scan", "--from", "x"], "win32")).toBeUndefined();
    expect(whyNotHere(["scan", "--from=x"], "darwin")).toBeUndefined();
    expect(whyNotHere(["scna"], "darwin")).toBeUndefined();
  });
});

/** Windows as far as Node can imitate it. It was never run on the system itself. */
function windowsMachine() {
  const drive = mkdtempSync(join(tmpdir(), "unghost-drive-c-"));
  onTestFinished(() => rm(drive, { recursive: true }));
  return {
    write: (path: string, content: string | Uint8Array): void => {
      mkdirSync(dirname(join(drive, path)), { recursive: true });
      writeFileSync(join(drive, path), content);
    },
    unghost: async (args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
      const imitation = resolve("test/support/windows-machine.ts");
      const words = [process.execPath, "--no-warnings", "--import", imitation, resolve("src/main.ts"), ...args];
      const { code, stdout, stderr } = await run(words, {
        timeoutMs: 120_000,
        env: { WINDOWS_DRIVE_C: drive, USERPROFILE: "C:\\Users\\jane", ...env },
      });
      return { code, stdout, stderr };
    },
  };
}

describe("on Windows", () => {
  test("a command of a node is one sentence", async () => {
    const { unghost } = windowsMachine();

    expect(await unghost(["heal", "--yes"])).toEqual({
      code: 2,
      stdout: "",
      stderr:
        "unghost: unghost heal runs on a Linux node, and this machine runs Windows. Run it from here: kubectl unghost heal NODE; on the node: sudo unghost heal\n",
    });
  });

  test("explain and version need nothing of Linux", async () => {
    const { unghost } = windowsMachine();

    expect(await unghost(["explain", 'name "a_b_c_0" is reserved for "1"'])).toMatchObject({ code: 0, stderr: "" });
    expect((await unghost(["version"])).stdout).toContain("windows/");
  });

  test("a bundle is read by its path with backslashes", async () => {
    const { write, unghost } = windowsMachine();
    const document = savedScanDocument({ version: "0.1.0", settings: {}, failedHeals: {}, snapshot: snapshotOf() });
    write("Users/jane/bundle.tar.gz", packed([{ name: SAVED_SCAN, text: JSON.stringify(document) }], NOW));

    const scanned = await unghost(["scan", "--from", "C:\\Users\\jane\\bundle.tar.gz", "-o", "json"]);

    expect(JSON.parse(scanned.stdout)).toMatchObject({ kind: "NodeReport" });
    expect(scanned.stderr).toContain("A bundle of ");
  });

  test("kubeconfigs come from KUBECONFIG, separated by semicolons, and from the home directory that has one", async () => {
    const rig = await fleetRig({
      [NODES_PATH]: nodesTable(["n1", "Ready"]),
      [PODS_PATH]: agentsTable(["n1", "1/1"]),
      [REPORTS_PATH]: reportsOf(reportObject("n1")),
    });
    const { write, unghost } = windowsMachine();
    const whole = kubeconfigOf({ server: rig.server.url, ca: rig.ca.cert });
    write("Users/jane/.kube/config", JSON.stringify(whole));
    write("first", JSON.stringify({ ...whole, clusters: [], users: [], "current-context": "" }));
    write("second", JSON.stringify(whole));
    const scan = ["fleet", "scan", "-o", "name"];

    const environments: readonly Readonly<Record<string, string>>[] = [
      {},
      { HOME: "C:\\nothing", HOMEDRIVE: "C:", HOMEPATH: "\\Users\\jane", USERPROFILE: "C:\\empty" },
      { KUBECONFIG: "C:\\first;C:\\missing;C:\\second" },
    ];
    for (const env of environments)
      expect(await unghost(scan, env)).toEqual({ code: 0, stdout: "node/n1\n", stderr: "" });
  });
});
