import { chownSync, mkdirSync, symlinkSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { readKubeletDirs } from "../../src/node/kubelet-dirs.ts";
import { fill, isRoot, tempDir } from "./temp-dir.ts";

const UID = "7d1e1b3c-3a52-4a5e-9a53-0c3c5f1f0a01";
const STATIC_UID = "0b3a8a6f2f3c4d5e6f708192a3b4c5d6";

function readPods(root: string) {
  return readKubeletDirs({
    root,
    kubeletRoots: ["/var/lib/kubelet", "/var/lib/k0s/kubelet"],
    podLogs: "/var/log/pods",
  });
}

describe("readKubeletDirs", () => {
  test("lists pods by UID, with their names when the logs contain them", () => {
    const root = fill(tempDir(), {
      [`var/lib/kubelet/pods/${UID}/volumes/.keep`]: "",
      [`var/lib/kubelet/pods/${STATIC_UID}/containers/.keep`]: "",
      [`var/log/pods/default_web-0_${UID}/.keep`]: "",
      "var/log/pods/odd/.keep": "",
    });

    const source = readPods(root);

    expect(source.status === "read" && source.value.toSorted((a, b) => a.uid.localeCompare(b.uid))).toEqual([
      { namespace: undefined, name: undefined, uid: STATIC_UID },
      { namespace: "default", name: "web-0", uid: UID },
    ]);
  });

  test.runIf(isRoot)("ignores a directory that users other than root can write to", () => {
    const root = fill(tempDir(), { [`var/lib/kubelet/pods/${UID}/volumes/.keep`]: "" });
    chownSync(`${root}/var/lib/kubelet`, 65534, 65534);

    expect(readPods(root)).toMatchObject({
      status: "failed",
      error: { message: expect.stringMatching(/\/var\/lib\/kubelet is owned by uid 65534.*chown root:/) },
    });
  });

  test("finds a kubelet root behind a link, and the second of two paths", () => {
    const moved = fill(tempDir(), { [`data/pods/${UID}/.keep`]: "" });
    mkdirSync(`${moved}/var/lib`, { recursive: true });
    symlinkSync("/data", `${moved}/var/lib/kubelet`);
    const k0s = fill(tempDir(), { [`var/lib/k0s/kubelet/pods/${UID}/.keep`]: "" });

    expect(readPods(moved)).toMatchObject({ status: "read", value: [{ uid: UID }] });
    expect(readPods(k0s)).toMatchObject({ status: "read", value: [{ uid: UID }] });
  });

  test("skips files and links among the pods; without a kubelet it is absent", () => {
    const root = fill(tempDir(), { "var/lib/kubelet/pods/file": "x", "var/lib/kubelet/pods/a_b/.keep": "" });
    symlinkSync("/etc", `${root}/var/lib/kubelet/pods/${UID}`);

    expect(readPods(root)).toMatchObject({ status: "read", value: [], oddities: [{}, {}, {}] });
    expect(readPods(tempDir())).toMatchObject({
      status: "absent",
      reason: expect.stringContaining("/var/lib/kubelet"),
    });
  });
});
