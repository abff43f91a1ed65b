import { describe, expect, test } from "vitest";
import { rootDirOf } from "../../src/node/kubelet-process.ts";

describe("root directory of a kubelet", () => {
  test.each<readonly [readonly string[], string | undefined]>([
    [["/usr/bin/kubelet"], undefined],
    [["/usr/bin/kubelet", "--root-dir=/data/kubelet"], "/data/kubelet"],
    [["/usr/bin/kubelet", "--root-dir", "/data/kubelet/"], "/data/kubelet"],
    [["/usr/bin/kubelet", "-root-dir=/data/kubelet"], "/data/kubelet"],
    [["/usr/bin/kubelet", "--root-dir=kubelet"], undefined],
    [["k3s", "server", "--kubelet-arg=root-dir=/data/k3s"], "/data/k3s"],
    [["k3s", "agent", "--kubelet-arg", "v=2", "--kubelet-arg", "root-dir=/data/k3s"], "/data/k3s"],
  ])("%j: %s", (argv, rootDir) => {
    expect(rootDirOf({ argv })).toBe(rootDir);
  });
});
