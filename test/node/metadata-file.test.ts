import { mkdirSync, symlinkSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CONTAINERD_ROOTS } from "../../src/host/distributions.ts";
import { readMetadataFile } from "../../src/node/metadata.ts";
import { tempDir } from "../support/temp-dir.ts";
import { type Tree, writeBolt } from "./bolt/write-bolt.ts";
import { CREATED, container, goTime, metadataTree, sandboxContainer, storeSandbox } from "./metadata-tree.ts";

const FILE = "io.containerd.metadata.v1.bolt/meta.db";
let dir: ReturnType<typeof tempDir>;

beforeEach(() => {
  dir = tempDir();
});
afterEach(() => dir.remove());

function put(root: string, content: Uint8Array | Tree): void {
  dir.write(`${root}/${FILE}`, content instanceof Uint8Array ? content : writeBolt(content));
}

function readBelow(containerdRoot?: string) {
  return readMetadataFile({ hostRoot: dir.path, containerdRoot });
}

describe("containerd's database", () => {
  test("returns ids, kinds, names, labels and times", () => {
    put(
      "/var/lib/containerd",
      metadataTree({
        containers: {
          one: sandboxContainer({ name: "web_default_uid_0" }),
          two: container("main_web_default_uid_0", "one"),
          other: { createdat: goTime(CREATED), image: "x" },
        },
        sandboxes: { one: storeSandbox({ name: "web_default_uid_0", cniResult: false }), half: storeSandbox() },
        leases: { one: { createdat: goTime(CREATED) }, odd: { createdat: "no time" } },
      }),
    );
    mkdirSync(dir.join("/var/lib/containerd/io.containerd.grpc.v1.cri/containers/two"), { recursive: true });
    const common = { createdAt: CREATED, labels: { "io.cri-containerd.kind": "sandbox", app: "web" } };
    const sandbox = { name: "web_default_uid_0", netnsPath: "/run/netns/x", hostNetwork: false, hasCniResult: true };
    expect(readBelow()).toEqual({
      status: "read",
      oddities: [],
      value: {
        path: `/var/lib/containerd/${FILE}`,
        damage: [],
        isEmpty: false,
        containerDirs: new Set(["two"]),
        records: [
          { id: "one", kind: "sandbox", ...common, sandbox },
          { id: "other", kind: "other", createdAt: CREATED, labels: {} },
          {
            id: "two",
            kind: "container",
            createdAt: CREATED,
            labels: { "io.cri-containerd.kind": "container", app: "web" },
            container: { name: "main_web_default_uid_0", sandboxId: "one" },
          },
        ].toSorted((one, other) => (one.id < other.id ? -1 : 1)),
        sandboxes: [
          { id: "half", ...common },
          { id: "one", ...common, sandbox: { ...sandbox, hasCniResult: false } },
        ],
        leases: [
          { id: "odd", createdAt: undefined },
          { id: "one", createdAt: CREATED },
        ],
      },
    });
  });

  test("names the status files of containers that do not contain a state", () => {
    put("/var/lib/containerd", {});
    const contents = { fine: '{"Version":"v1","Status":{}}', torn: '{"Version":', empty: "" };
    for (const [id, content] of Object.entries(contents))
      dir.write(`/var/lib/containerd/io.containerd.grpc.v1.cri/containers/${id}/status`, content);
    expect(readBelow()).toMatchObject({
      value: {
        brokenStatusFiles: [
          { containerId: "empty", health: "empty" },
          { containerId: "torn", health: "corrupt" },
        ],
      },
    });
  });

  test.each(CONTAINERD_ROOTS)("is found in %s", (root) => {
    put(root, {});
    expect(readBelow()).toMatchObject({ status: "read", value: { path: `${root}/${FILE}`, records: [] } });
  });

  test("of an embedded runtime is preferred", () => {
    for (const root of CONTAINERD_ROOTS) put(root, {});
    expect(readBelow()).toMatchObject({ value: { path: `/var/lib/rancher/k3s/agent/containerd/${FILE}` } });
    expect(readBelow("/var/lib/containerd")).toMatchObject({ value: { path: `/var/lib/containerd/${FILE}` } });
  });

  test("is found behind a symlink, resolved like on the node", () => {
    put("/data/containerd", {});
    mkdirSync(dir.join("/var/lib"), { recursive: true });
    symlinkSync("/data/containerd", dir.join("/var/lib/containerd"));
    expect(readBelow()).toMatchObject({ status: "read" });
  });

  test("that does not exist is absent, and the reason lists all paths", () => {
    const source = readBelow();
    expect(source.status).toBe("absent");
    for (const root of CONTAINERD_ROOTS) expect(source).toMatchObject({ reason: expect.stringContaining(root) });
  });

  test("that is empty, or has other content, is reported as such", () => {
    put("/empty", new Uint8Array());
    put("/text", Buffer.from("this is no database\n"));
    expect(readBelow("/empty")).toMatchObject({ status: "read", value: { isEmpty: true, damage: [], records: [] } });
    expect(readBelow("/text")).toMatchObject({ status: "read", value: { isEmpty: false, damage: [{ page: 0 }, {}] } });
  });

  test("of another program has no records", () => {
    put("/other", { v1: { moby: { containers: { one: sandboxContainer({ name: "x" }) } } }, "k8s.io": "a value" });
    expect(readBelow("/other")).toMatchObject({ status: "read", value: { records: [], damage: [] } });
  });
});
