import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../../lab/poll.ts";
import type { FleetState } from "../../src/report/fleet-state.ts";
import {
  agentsTable,
  fleetRig,
  NODES_PATH,
  nodesTable,
  PODS_PATH,
  REPORTS_PATH,
  reportObject,
  reportsOf,
} from "../fleet/fleet-rig.ts";
import { UNGHOST } from "./unghost.ts";

const WAIT_MS = 60_000;

test("unghost fleet dashboard serves the cluster's state on loopback until Ctrl-C", async () => {
  const rig = await fleetRig({
    [NODES_PATH]: nodesTable(["n1", "Ready"]),
    [PODS_PATH]: agentsTable(["n1", "1/1"]),
    [REPORTS_PATH]: reportsOf(reportObject("n1", { verdict: "ghosts" })),
  });
  const child = spawn(UNGHOST, ["fleet", "dashboard", "--port=0", `--kubeconfig=${rig.kubeconfig}`], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const exited = once(child, "exit");
  let stdout = "";
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  const address = await until("it names its address", WAIT_MS, () => /http:\/\/127\.0\.0\.1:\d+/.exec(stdout)?.[0]);

  const stop = new AbortController();
  const events = await fetch(`${address}/api/events`, { signal: stop.signal });
  let seen = "";
  const reading = (async () => {
    for await (const chunk of events.body ?? []) seen += Buffer.from(chunk).toString();
  })();
  const broken = reading.then(
    () => "ended",
    () => "closed",
  );
  await until("the page is sent the node", WAIT_MS, () => seen.includes('"verdict":"ghosts"') || undefined);
  const state = (await (await fetch(`${address}/api/state`)).json()) as FleetState;
  expect(state).toMatchObject({ nodes: [{ name: "n1", verdict: "ghosts" }] });
  expect((await fetch(`${address}/`, { method: "POST" })).status).toBe(405);

  child.kill("SIGINT");
  expect(await exited).toEqual([0, null]);
  stop.abort();
  expect(await broken).toBe("closed");
});
