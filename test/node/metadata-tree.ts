import { Any } from "../../src/runtime/gen/google/protobuf/any.ts";
import type { Tree } from "./bolt/write-bolt.ts";

/** Records as containerd stores them, for files that tests write. */

interface SandboxSpec {
  readonly name: string;
  readonly cniResult?: boolean;
}

export function goTime(date: Date): Uint8Array {
  const bytes = Buffer.alloc(15);
  bytes[0] = 1;
  bytes.writeBigInt64BE(BigInt(Math.floor(date.getTime() / 1000)) + 62_135_596_800n, 1);
  bytes.writeInt32BE((date.getTime() % 1000) * 1_000_000, 9);
  bytes.writeInt16BE(-1, 13);
  return bytes;
}

export function metadataTree(stores: {
  readonly containers?: Tree;
  readonly sandboxes?: Tree;
  readonly leases?: Tree;
}): Tree {
  return { v1: { version: "\u0006", "k8s.io": { images: { "some/image": { createdat: "x" } }, ...stores } } };
}

export const CREATED = new Date("2026-02-03T04:05:06.789Z");

export function sandboxContainer({ name, cniResult = true }: SandboxSpec): Tree {
  return record("sandbox", { "io.cri-containerd.sandbox.metadata": sandboxExtension({ name, cniResult }) });
}

export function storeSandbox(spec?: SandboxSpec): Tree {
  return record("sandbox", spec === undefined ? {} : { metadata: sandboxExtension(spec) });
}

export function container(name: string, sandboxId: string): Tree {
  const metadata = extension({ ID: "unused", Name: name, SandboxID: sandboxId });
  return record("container", { "io.cri-containerd.container.metadata": metadata });
}

function record(kind: string, extensions: Tree): Tree {
  return {
    createdat: goTime(CREATED),
    labels: { "io.cri-containerd.kind": kind, app: "web" },
    extensions,
    spec: "s".repeat(3000),
  };
}

function sandboxExtension({ name, cniResult = true }: SandboxSpec): Uint8Array {
  return extension({ Name: name, NetNSPath: "/run/netns/x", CNIResult: cniResult ? {} : null });
}

function extension(metadata: object): Uint8Array {
  const value = Buffer.from(JSON.stringify({ Version: "v1", Metadata: metadata }));
  return Any.encode({ typeUrl: "some/type", value }).finish();
}
