import { chmodSync, chownSync, lchownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { placesAt } from "../../src/host/distributions.ts";
import { valueOr } from "../../src/host/source.ts";
import { readLogs } from "../../src/node/logs.ts";
import { writeWithParents } from "../support/temp-dir.ts";

const TROUBLE = 'level=error msg="StopPodSandbox failed" error="failed to destroy network"';
const MAX_LINES = 2000;

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "unghost-logs-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Any filter is enough: the catalogue decides which lines matter. */
const isRelevantLine = (line: string): boolean => line.length > 0 && !line.includes("hello");

async function linesOf(log: string): Promise<readonly string[]> {
  writeWithParents(join(root, "var/log/containerd.log"), log);
  const sources = placesAt("/run/containerd/containerd.sock");
  const logs = await readLogs({ root, sources, signal: AbortSignal.timeout(10_000), isRelevantLine });
  return valueOr(logs, undefined)?.lines.map(({ text }) => text) ?? [];
}

describe("log lines that may concern a sandbox", () => {
  test("are all that name a sandbox or its network, in order, whatever is between them", async () => {
    const kept = [TROUBLE, `${TROUBLE} ü`, "netns"];
    const line = fc.constantFrom(...kept, "", "level=info msg=hello");
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 30 }), fc.boolean(), async (lines, isTerminated) => {
        const log = lines.join("\n") + (isTerminated ? "\n" : "");
        expect(await linesOf(log)).toEqual(lines.filter((one) => kept.includes(one)));
      }),
    );
  });

  test("are the newest ones of a flood", async () => {
    const flood = Array.from({ length: MAX_LINES + 500 }, (_, index) => `${TROUBLE} ${index}`);
    expect(await linesOf(flood.join("\n"))).toEqual(flood.slice(-MAX_LINES));
  });

  test("of the runtime are not displaced by a flood of kubelet's", async () => {
    const flood = Array.from({ length: MAX_LINES + 500 }, (_, index) => `${TROUBLE} ${index}`);
    mkdirSync(join(root, "var/log"), { recursive: true });
    writeFileSync(join(root, "var/log/kubelet.log"), flood.join("\n"));

    const lines = await linesOf(`${TROUBLE} of the runtime`);

    expect(lines).toEqual([`${TROUBLE} of the runtime`, ...flood.slice(-MAX_LINES)]);
  });
});

describe("lines of journald", () => {
  const entry = (comm: string | undefined, uid: string, message: unknown) =>
    JSON.stringify({ _COMM: comm, _UID: uid, MESSAGE: message, __CURSOR: "s=1" });

  test("count only when the service itself wrote them", async () => {
    const entries = [
      entry("kubelet", "0", `${TROUBLE} kubelet`),
      entry("k3s-server", "0", `${TROUBLE} k3s`),
      entry(".kubelet-wrappe", "0", `${TROUBLE} wrapped`),
      entry("containerd", "0", [...Buffer.from(`${TROUBLE} bytes`)]),
      entry("containerd-shim", "0", `${TROUBLE} shim`),
      entry("multus", "0", `${TROUBLE} plugin`),
      entry("kubelet", "1000", `${TROUBLE} user`),
      entry(undefined, "0", `${TROUBLE} none`),
      entry("kubelet", "0", null),
      "no JSON",
    ];
    const bin = join(root, "bin");
    for (const dir of ["run/systemd/journal", "var/log/journal", "bin"])
      mkdirSync(join(root, dir), { recursive: true });
    writeFileSync(join(root, "entries"), `${entries.join("\n")}\n`);
    writeFileSync(
      join(bin, "journalctl"),
      `#!/bin/sh\ncase "$*" in *kubelet*) exec /bin/cat ${join(root, "entries")} ;; esac\n`,
    );
    chmodSync(join(bin, "journalctl"), 0o755);
    vi.stubEnv("PATH", bin);

    const lines = await linesOf("");

    vi.unstubAllEnvs();
    expect(lines.map((line) => line.split(" ").at(-1))).toEqual(["kubelet", "k3s", "wrapped", "bytes"]);
  });
});

const IS_ROOT = process.geteuid?.() === 0;

describe.skipIf(!IS_ROOT)("a log that users other than root could have written", () => {
  const log = () => join(root, "var/log/containerd.log");

  test.each<readonly [string, () => void]>([
    ["is a file of another user", () => chownSync(log(), 65534, 65534)],
    ["is a world-writable file", () => chmodSync(log(), 0o666)],
    ["is in a directory of another user", () => chownSync(join(root, "var/log"), 65534, 65534)],
    ["is in a world-writable directory", () => chmodSync(join(root, "var"), 0o777)],
    [
      "is reached through another user's link",
      () => {
        rmSync(log());
        writeFileSync(join(root, "real.log"), TROUBLE);
        symlinkSync("/real.log", log());
        lchownSync(log(), 65534, 65534);
      },
    ],
  ])("is not used when it %s, and is reported", async (_, spoil) => {
    expect(await linesOf(TROUBLE)).toEqual([TROUBLE]);
    spoil();

    const sources = placesAt("/run/containerd/containerd.sock");
    const logs = await readLogs({ root, sources, signal: AbortSignal.timeout(10_000), isRelevantLine });

    expect(valueOr(logs, undefined)?.lines).toEqual([]);
    expect(logs).toMatchObject({
      oddities: [{ path: "/var/log/containerd.log", reason: expect.stringContaining("is not used") }],
    });
  });

  test("is used in a directory of a system group, like Ubuntu's /var/log", async () => {
    await linesOf(TROUBLE);
    chownSync(join(root, "var/log"), 0, 104);
    chmodSync(join(root, "var/log"), 0o775);

    expect(await linesOf(TROUBLE)).toEqual([TROUBLE]);
  });
});
