import { expect, onTestFinished, test, vi } from "vitest";
import { serveStubApi } from "../../lab/stub-api/serve.ts";
import { openStore } from "../../lab/stub-api/store.ts";
import { type WatchedReport, watchReports } from "../../src/fleet/watch-reports.ts";
import { REPORTS_PATH, reportObject } from "./fleet-rig.ts";

const UNHEALTHY = {
  verdict: "ghosts",
  totals: { findings: 1, blockedPods: 2 },
  classes: [{ class: "shim-leak", count: 1 }],
};

test("shows all reports, then each change of what they show, and a report that is deleted", async () => {
  const store = openStore();
  for (const name of ["n1", "n2"]) store.put(`${REPORTS_PATH}/${name}`, reportObject(name));
  const api = await serveStubApi({ store });
  onTestFinished(() => api.close());
  const shown: (readonly WatchedReport[])[] = [];
  const stop = new AbortController();
  const watching = watchReports({
    access: { server: new URL(api.url), tls: { insecure: false }, from: "test" },
    requestMs: 20_000,
    stop: stop.signal,
    onChange: (reports) => shown.push(reports),
    onTrouble: () => undefined,
  });
  const until = (fits: () => boolean) => vi.waitUntil(fits, { timeout: 30_000 });
  await until(() => shown.length === 1);
  expect(shown[0]?.map(({ name, verdict }) => [name, verdict])).toEqual([
    ["n1", "healthy"],
    ["n2", "healthy"],
  ]);

  store.put(`${REPORTS_PATH}/n2`, reportObject("n2", UNHEALTHY));
  await until(() => shown.flat().some(({ verdict }) => verdict === "ghosts"));
  expect(shown.flat().at(-1)).toEqual({
    name: "n2",
    verdict: "ghosts",
    findings: 1,
    classes: "1 shim-leak",
    blockedPods: 2,
    podCreation: "-",
  });
  store.remove(`${REPORTS_PATH}/n1`);
  await until(() => shown.flat().some(({ name, verdict }) => name === "n1" && verdict === "deleted"));

  stop.abort();
  await watching;
});
