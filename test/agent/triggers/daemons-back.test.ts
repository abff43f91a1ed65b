import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../../../lab/poll.ts";
import { watchDaemonsBack } from "../../../src/agent/triggers/daemons-back.ts";
import { read } from "../../../src/host/source.ts";
import type { CniDaemon } from "../../../src/node/types/cni.ts";
import { podUid } from "../../../src/node/types/ids.ts";
import type { KnownPod, Snapshot } from "../../../src/node/types/snapshot.ts";
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
