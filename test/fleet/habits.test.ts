import { describe, expect, test } from "vitest";
import { listOf } from "../kube/stub-server.ts";
import {
  agentsTable,
  fleetRig,
  NODES_PATH,
  nodesTable,
  PODS_PATH,
  REPORTS_PATH,
  reportObject,
  reportsOf,
} from "./fleet-rig.ts";

const SHOP_PODS = "/api/v1/namespaces/shop/pods";

const CLUSTER = {
  [NODES_PATH]: nodesTable(["n1", "Ready"], ["n2", "Ready"], ["bad name", "Ready"]),
  [PODS_PATH]: agentsTable(["n1", "1/1"]),
  [REPORTS_PATH]: reportsOf(reportObject("n1")),
  [SHOP_PODS]: nodesTable(["web-0", "Running"], ["db-0", "Running"]),
};

describe("words that complete `kubectl unghost`", () => {
  const completed = async (...words: readonly string[]) => {
    const rig = await fleetRig(CLUSTER);
    const { code, stdout, stderr } = await rig.run(["__complete", "fleet", `--kubeconfig=${rig.kubeconfig}`, ...words]);
    expect([code, stderr]).toEqual([0, ""]);
    return stdout.split("\n").filter(Boolean);
  };

  test.each<[readonly string[], readonly string[]]>([
    [["h"], ["heal", "history"]],
    [
      ["scan", ""],
      ["n1", "n2"],
    ],
    [["scan", "n1", ""], ["n2"]],
    [["history", "n2"], ["n2"]],
    [["why", "-n", "shop", "w"], ["web-0"]],
    [["why", "shop/d"], ["shop/db-0"]],
    [["why", "shop/web-0", ""], []],
    [["scan", "-o", "custom"], ["custom-columns="]],
    [
      ["scan", "--output", "j"],
      ["json", "jsonpath=", "jsonpath-as-json="],
    ],
    [["--context", ""], ["lab"]],
    [
      ["--context", "lab", "scan", ""],
      ["n1", "n2"],
    ],
    [["scan", "--no-h"], ["--no-headers"]],
    [["scan", "-l", ""], []],
  ])("%j", async (words, expected) => {
    expect(await completed(...words)).toEqual(expected);
  });

  test("are none where no cluster answers, without an error in the prompt", async () => {
    const rig = await fleetRig({});

    expect(await rig.run(["__complete", "fleet", "scan", "--kubeconfig=/missing", ""])).toEqual({
      code: 0,
      stdout: "",
      stderr: "",
    });
  });
});

describe("-A", () => {
  const pod = (namespace: string) => ({
    metadata: { name: "web-0", namespace, uid: "7d1f" },
    spec: {},
    status: { phase: "Running" },
  });

  test("finds the pod of a name in any namespace", async () => {
    const rig = await fleetRig({
      [PODS_PATH]: listOf([pod("shop")]),
      [`${SHOP_PODS}/web-0`]: pod("shop"),
      "/api/v1/namespaces/shop/events": listOf([]),
    });

    const { stdout } = await rig.fleet("why", "-A", "web-0", "-o", "json");

    expect(JSON.parse(stdout)).toMatchObject({ pod: { namespace: "shop", name: "web-0" } });
    expect(rig.server.asked[0]?.query.get("fieldSelector")).toBe("metadata.name=web-0");
  });

  test.each([
    [["shop", "test"], 64, "choose one of shop/web-0, test/web-0"],
    [[], 2, 'no namespace has a pod "web-0"'],
  ])("with pods in %j is a sentence", async (namespaces, code, message) => {
    const rig = await fleetRig({ [PODS_PATH]: listOf(namespaces.map(pod)) });

    const answer = await rig.fleet("why", "web-0", "--all-namespaces");

    expect(answer).toMatchObject({ code, stderr: expect.stringContaining(message) });
  });
});

test.each(["0", "5", "5s", "1m"])("--request-timeout %s is one of kubectl's", async (timeout) => {
  const rig = await fleetRig(CLUSTER);

  expect((await rig.fleet("scan", "n1", "--request-timeout", timeout, "-o", "name")).stdout).toBe("node/n1\n");
});

test.each<readonly string[]>([
  ["watch", "--dry-run"],
  ["scan", "--yes"],
  ["history", "n1", "-l", "pool=a"],
  ["dashboard", "-o", "json"],
  ["why", "web-0", "--allow", "D1"],
])("a flag that the action does not use is refused: %s %s %s", async (...words) => {
  const rig = await fleetRig(CLUSTER);

  const { code, stderr } = await rig.run(["fleet", `--kubeconfig=${rig.kubeconfig}`, ...words]);

  expect([code, stderr]).toEqual([
    64,
    expect.stringMatching(/^unghost: unghost fleet \w+ has no flag --[a-z-]+ \(for /),
  ]);
});
