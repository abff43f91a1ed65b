import * as v from "valibot";
import { afterEach, beforeEach, expect, test } from "vitest";
import { bootProc } from "../../../lab/simulated/proc-files.ts";
import type { ScanFlags } from "../../../src/cli/commands/scan.ts";
import { runScanOffline } from "../../../src/cli/commands/scan-offline.ts";
import { NodeReportSchema } from "../../../src/report/node-report.ts";
import { type Tree, writeBolt } from "../../node/bolt/write-bolt.ts";
import { metadataTree, sandboxContainer } from "../../node/metadata-tree.ts";
import { tempDir } from "../../support/temp-dir.ts";

let dir: ReturnType<typeof tempDir>;

beforeEach(() => {
  dir = tempDir();
  bootProc(dir.path, Date.now() - 60_000);
});
afterEach(() => dir.remove());

function put(content: Uint8Array | Tree): void {
  const path = "var/lib/containerd/io.containerd.metadata.v1.bolt/meta.db";
  dir.write(path, content instanceof Uint8Array ? content : writeBolt(content));
}

async function scan(flags: ScanFlags = {}) {
  let stdout = "";
  const io = {
    stdout: (text: string) => {
      stdout += text;
    },
    stderr: () => undefined,
    env: {},
    stdoutIsTerminal: false,
    stdinIsTerminal: false,
    columns: 100,
    stdin: () => {
      throw new Error("nothing is read from here");
    },
  };
  const code = await runScanOffline({ hostRoot: dir.path, output: "json", node: "test", ...flags }, io);
  return { code, stdout };
}

const TWO_OF_ONE_NAME = metadataTree({
  containers: {
    ["a".repeat(64)]: sandboxContainer({ name: "web_default_uid_0" }),
    ["b".repeat(64)]: sandboxContainer({ name: "web_default_uid_0" }),
  },
});

test("an empty database is healthy", async () => {
  put(metadataTree({}));
  const { code, stdout } = await scan();
  expect(v.parse(NodeReportSchema, JSON.parse(stdout))).toMatchObject({
    verdict: "healthy",
    runtime: { name: "containerd", reachable: false },
    sandboxes: { total: 0, ready: 0, notReady: 0 },
    problems: [],
  });
  expect(code).toBe(0);
});

test("duplicates are reported as JSON", async () => {
  put(TWO_OF_ONE_NAME);
  const { code, stdout } = await scan();
  expect(v.parse(NodeReportSchema, JSON.parse(stdout))).toMatchObject({
    verdict: "ghosts",
    sandboxes: { total: 2, ready: 0, notReady: 2 },
    findings: [{ class: "recover-duplicate-sandbox-name" }],
  });
  expect(code).toBe(1);
});

test("duplicates are reported as a table", async () => {
  put(TWO_OF_ONE_NAME);
  const { stdout } = await scan({ output: "table" });
  expect(stdout).toMatch(/^FINDINGS {2}1 finding on test · runtime not reached\n/);
  const { stdout: verbose } = await scan({ output: "table", verbose: true });
  expect(verbose).toContain("default/web (attempt 0)");
  expect(verbose).toContain("blocks the next start of the runtime");
});

test("classes that were not requested are left out", async () => {
  put(TWO_OF_ONE_NAME);
  expect((await scan({ skip: ["recover-duplicate-sandbox-name"] })).code).toBe(0);
  expect((await scan({ only: ["bolt-corruption"] })).code).toBe(0);
  await expect(scan({ only: ["no-such-class"] })).rejects.toThrow(/unknown failure class/);
});

test("a damaged database is a finding", async () => {
  put(Buffer.alloc(100_000, "x"));
  const { code, stdout } = await scan();
  expect(JSON.parse(stdout)).toMatchObject({ verdict: "ghosts", findings: [{ class: "bolt-corruption" }] });
  expect(code).toBe(1);
});

test("a missing database is a problem with a next step", async () => {
  const { code, stdout } = await scan();
  expect(JSON.parse(stdout)).toMatchObject({
    verdict: "unknown",
    problems: [{ source: "containerd", next: expect.stringContaining("--containerd-root") }],
  });
  expect(code).toBe(2);
  await expect(scan({ containerdRoot: "relative" })).rejects.toThrow(/--containerd-root/);
});
