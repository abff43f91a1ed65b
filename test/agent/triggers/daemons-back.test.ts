import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../../../lab/poll.ts";
import { unary } from "../../../lab/simulated/handlers.ts";
import { socketServer } from "../../../lab/simulated/server.ts";
import { watchDaemonsBack } from "../../../src/agent/triggers/daemons-back.ts";
import { read, valueOr } from "../../../src/host/source.ts";
import type { CniDaemon } from "../../../src/node/types/cni.ts";
import { podUid } from "../../../src/node/types/ids.ts";
import type { KnownPod, Snapshot } from "../../../src/node/types/snapshot.ts";
import { StatusRequest, StatusResponse } from "../../../src/runtime/gen/runtime/v1/cri.ts";
import { tempDir } from "../../node/temp-dir.ts";
import { snapshotOf } from "../../support/snapshot-builder.ts";

const GUARD_MS = 30_000;

function watching(hostRoot = "/") {
  const back: string[] = [];
  const watch = watchDaemonsBack({ hostRoot, onBack: (what) => back.push(what), everyMs: 10 });
  onTestFinished(() => watch.close());
  return { watch, back };
}

function withDaemon(socket: string, state: CniDaemon["state"]): Snapshot {
  return snapshotOf({}, { cniDaemons: read([{ socket, plugins: ["kube-ovn"], state }]) });
}

async function serve(path: string): Promise<Server> {
  const server = createServer((connection) => connection.end());
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => void server.close());
  return server;
}

test("a socket that was not served is back as soon as a process listens on it, once", async () => {
  const socket = join(tempDir(), "daemon.sock");
  const { watch, back } = watching();
  watch.saw(withDaemon(socket, "missing"));
  // While nothing is reported as failing the daemons are not read.
  watch.saw(snapshotOf());

  await serve(socket);
  await until("it is back", GUARD_MS, () => (back.length > 0 ? true : undefined));
  watch.saw(withDaemon(socket, "listening"));
  await new Promise((resolve) => setTimeout(resolve, 100));

  expect(back).toEqual([socket]);
});

test("a socket that was always served is not back", async () => {
  const socket = join(tempDir(), "daemon.sock");
  await serve(socket);
  const { watch, back } = watching();

  watch.saw(withDaemon(socket, "listening"));
  await new Promise((resolve) => setTimeout(resolve, 100));

  expect(back).toEqual([]);
});

test("the pod of a network add-on is back when the API has it Ready", () => {
  const withPod = (networkAddOn: KnownPod["networkAddOn"]): Snapshot => {
    const pod = { namespace: "kube-system", name: "calico-node-x", uid: podUid("a"), networkAddOn };
    const holds = { paused: false, node: false, namespaces: [] };
    return snapshotOf({}, { kubernetes: { source: "api", pods: [pod], holds } });
  };
  const { watch, back } = watching();

  for (const state of ["ready", "not-ready", "not-ready", "ready", "ready"] as const) watch.saw(withPod(state));

  expect(back).toEqual(["pod kube-system/calico-node-x"]);
});

/** A runtime whose network is as the test sets it, and that counts how often it is asked. */
async function runtimeAt(path: string) {
  const seen = { isReady: false, asked: 0 };
  const status = unary(StatusRequest, StatusResponse, () => {
    seen.asked += 1;
    const conditions = [
      { type: "RuntimeReady", status: true },
      {
        type: "NetworkReady",
        status: seen.isReady,
        reason: "NetworkPluginNotReady",
        message: "cni plugin not initialized",
      },
    ];
    return StatusResponse.fromPartial({ status: { conditions } });
  });
  const server = socketServer(path, new Map([["/runtime.v1.RuntimeService/Status", status]]));
  await server.listen();
  onTestFinished(() => server.kill());
  return { seen, server };
}

/** What a scan saw of the runtime's network. */
function withNetwork(socket: string, status: boolean): Snapshot {
  const plain = snapshotOf();
  const cri = valueOr(plain.cri, undefined);
  if (cri === undefined) throw new Error("the snapshot has no answer of the runtime");
  const conditions = [{ type: "NetworkReady", status, reason: "", message: "" }];
  return { ...plain, cri: read({ ...cri, conditions }), runtime: { ...plain.runtime, endpoint: `unix://${socket}` } };
}

test("the runtime's network is back with its status, once", async () => {
  const socket = join(tempDir(), "cri.sock");
  const { seen } = await runtimeAt(socket);
  const { watch, back } = watching();
  watch.saw(withNetwork(socket, false));

  await until("it was asked more than once", GUARD_MS, () => (seen.asked > 2 ? true : undefined));
  expect(back).toEqual([]);
  seen.isReady = true;
  await until("it is back", GUARD_MS, () => (back.length > 0 ? true : undefined));
  const { asked } = seen;
  watch.saw(withNetwork(socket, true));
  await new Promise((resolve) => setTimeout(resolve, 100));

  expect(back).toEqual(["the runtime's network"]);
  expect(seen.asked).toBe(asked);
});

test("a runtime whose network was never down is not asked", async () => {
  const socket = join(tempDir(), "cri.sock");
  const { seen } = await runtimeAt(socket);
  const { watch, back } = watching();

  watch.saw(withNetwork(socket, true));
  await new Promise((resolve) => setTimeout(resolve, 100));

  expect({ asked: seen.asked, back }).toEqual({ asked: 0, back: [] });
});

test("a runtime that does not answer yet is no network that is back", async () => {
  const socket = join(tempDir(), "cri.sock");
  const { watch, back } = watching();
  watch.saw(withNetwork(socket, false));
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(back).toEqual([]);

  const { seen } = await runtimeAt(socket);
  seen.isReady = true;
  await until("it is back", GUARD_MS, () => (back.length > 0 ? true : undefined));

  expect(back).toEqual(["the runtime's network"]);
});
