import { describe, expect, test } from "vitest";
import { read } from "../../src/host/source.ts";
import type { CniDaemon } from "../../src/node/types/cni.ts";
import { diagnosed, named } from "../support/diagnosed.ts";
import { containerdLine, klog } from "../support/log-lines.ts";
import {
  addressOf,
  containerOf,
  delErrorLine,
  FINISHED,
  idOf,
  MULTUS,
  type NodeParts,
  PATIENT,
  recordOf,
  resultOf,
  sandboxOf,
  scratchOf,
} from "../support/snapshot-builder.ts";

const UNAUTHORIZED =
  'plugin type="calico" failed (delete): error getting ClusterInformation: connection is unauthorized: Unauthorized';
const SOCKET_DOWN =
  'plugin type="kube-ovn" failed (delete): RPC failed; Post "http://dummy/api/v1/del": dial unix /run/openvswitch/kube-ovn-daemon.sock: connect: connection refused';
const LOSSY = 'plugin type="kube-ovn" failed (delete): Invalid Configuration; server_socket is required in cni.conf';
const CORRUPT =
  'failed to get network "cbr0" cached result: decoding version from network config: unexpected end of JSON input';

/** Kubelet's log line of a failed stop. */
function stopFailed(digit: string, cause: string): string {
  return stopFailedWith(
    digit,
    `rpc error: code = Unknown desc = failed to destroy network for sandbox "${idOf(digit)}": ${cause}`,
  );
}

function stopFailedWith(digit: string, error: string): string {
  return `"StopPodSandbox from runtime service failed" err=${JSON.stringify(error)} podSandboxID="${idOf(digit)}"`;
}

const OLD_AND_UNKNOWN = klog(3_600, stopFailed("a", "something went wrong"));

/** Dead, with its network still up: its teardown is blocked. */
const stuck: NodeParts = { sandboxes: [sandboxOf("a")], records: [recordOf("a")], results: [resultOf("a")] };

describe("a dead sandbox that only the log explains", () => {
  test.each<[string, string, NodeParts]>([
    ["calico-unauthorized", UNAUTHORIZED, {}],
    ["cni-daemon-socket-down", SOCKET_DOWN, {}],
    ["multus-lossy-conflist", LOSSY, { conf: MULTUS, multus: [scratchOf("a")] }],
  ])("gets the class %s, with the line as evidence", (expected, cause, parts) => {
    const { findings } = diagnosed({ ...stuck, ...parts, logLines: ["noise", delErrorLine("a", cause), "more noise"] });

    expect(findings.map(({ id }) => id)).toEqual([`${expected}/${idOf("a")}`]);
    expect(findings[0]?.summary).toContain(`the answer is «${cause.replace(/^.*\(delete\): /, "")}»`);
    expect(findings[0]?.evidence.at(-1)).toEqual({ source: "logs", fact: `journal: ${delErrorLine("a", cause)}` });
  });

  test.each<readonly [CniDaemon["state"], string]>([
    ["dead", "cni-daemon-socket-down"],
    ["listening", "dead-after-crash"],
  ])("is not classified by an error whose daemon is back: its socket is %s", (state, expected) => {
    const socket = "/run/openvswitch/kube-ovn-daemon.sock";
    const cniDaemons = read([{ socket, plugins: ["kube-ovn"], state }]);
    const found = diagnosed({ ...stuck, logLines: [delErrorLine("a", SOCKET_DOWN)] }, PATIENT, { cniDaemons });

    expect(found.findings.flatMap(({ id, subject }) => ("sandboxId" in subject ? [id] : []))).toEqual([
      `${expected}/${idOf("a")}`,
    ]);
  });

  test("is classified by its newest line", () => {
    const logLines = [delErrorLine("a", UNAUTHORIZED), delErrorLine("a", SOCKET_DOWN)];

    expect(named(diagnosed({ ...stuck, logLines }))).toEqual([`cni-daemon-socket-down/${idOf("a")}`]);
  });

  test("is classified by the newest line of all logs, in any order of reading", () => {
    const kubelet = klog(60, stopFailed("a", LOSSY));
    const released = containerdLine(30, "info", `TearDown network for sandbox "${idOf("a")}" successfully`);
    const multusSkippedDelegates = { ...stuck, conf: MULTUS, results: [], addresses: [addressOf("a", "10.88.0.2")] };
    const successor = sandboxOf("b", { uid: "a", attempt: 1, state: "ready" });
    const runsAgain = { ...multusSkippedDelegates, sandboxes: [sandboxOf("a"), successor] };

    const over = diagnosed({ ...runsAgain, logLines: [released, kubelet] }, PATIENT);
    const again = diagnosed({ ...runsAgain, logLines: [released, klog(20, stopFailed("a", LOSSY))] }, PATIENT);

    expect([over.verdict, named(over), over.pending]).toEqual(["healthy", [], []]);
    expect(named(again)).toEqual([`multus-lossy-conflist/${idOf("a")}`]);
  });

  test("is a finding even when it is kept on purpose, because its teardown fails", () => {
    const containers = [containerOf("a", { exit: FINISHED })];

    expect(named(diagnosed({ ...stuck, containers, logLines: [delErrorLine("a", UNAUTHORIZED)] }))).toEqual([
      `calico-unauthorized/${idOf("a")}`,
    ]);
  });

  test.each<readonly [string, NodeParts]>([
    ["a line about another sandbox", { logLines: [delErrorLine("b", UNAUTHORIZED)] }],
    ["a line without a known cause, from before the last minutes", { logLines: [OLD_AND_UNKNOWN] }],
    ["a file that was repaired since", { logLines: [delErrorLine("a", CORRUPT)] }],
  ])("is not explained by %s", (_, parts) => {
    expect(named(diagnosed({ ...stuck, ...parts }))).toEqual([`dead-after-crash/${idOf("a")}`]);
  });

  test("is not a finding once its network is down", () => {
    expect(named(diagnosed({ ...stuck, results: [], logLines: [delErrorLine("a", UNAUTHORIZED)] }))).toEqual([]);
  });
});

describe("a dead sandbox whose removal fails now for a cause that no class has", () => {
  const unknown = 'plugin type="newnet" name="newnet" failed (delete): the moon is full';

  test("is named as such, in the runtime's own words", () => {
    const { findings } = diagnosed({ ...stuck, logLines: [delErrorLine("a", unknown)] });

    expect(findings.map(({ id }) => id)).toEqual([`removal-fails-unknown-cause/${idOf("a")}`]);
    expect(findings[0]?.summary).toContain("the answer is «the moon is full»");
    expect(findings[0]?.evidence.at(-1)?.fact).toContain("the moon is full");
  });

  test("is never of a class of multus on a node without multus", () => {
    const { findings } = diagnosed({ ...stuck, logLines: [delErrorLine("a", LOSSY)] });

    expect(findings.map(({ id }) => id)).toEqual([`removal-fails-unknown-cause/${idOf("a")}`]);
    expect(findings[0]?.summary).toContain("server_socket is required in cni.conf");
  });

  test("is of the class of an earlier line whose cause is known", () => {
    const logLines = [delErrorLine("a", UNAUTHORIZED), delErrorLine("a", unknown)];

    expect(named(diagnosed({ ...stuck, logLines }))).toEqual([`calico-unauthorized/${idOf("a")}`]);
  });

  test("is not named after a successful release, or when the call only timed out", () => {
    const released = containerdLine(5, "info", `TearDown network for sandbox "${idOf("a")}" successfully`);
    const timedOut = klog(
      30,
      stopFailedWith("a", "rpc error: code = DeadlineExceeded desc = context deadline exceeded"),
    );

    expect(named(diagnosed({ ...stuck, logLines: [delErrorLine("a", unknown), released] }))).toEqual([
      `dead-after-crash/${idOf("a")}`,
    ]);
    expect(named(diagnosed({ ...stuck, logLines: [timedOut] }))).not.toContain(
      `removal-fails-unknown-cause/${idOf("a")}`,
    );
  });
});

describe("a finding that the snapshot explains", () => {
  test("gets the newest line about its sandbox as more evidence, and keeps its class", () => {
    const logLines = [delErrorLine("a", CORRUPT), delErrorLine("b", UNAUTHORIZED)];
    const { findings } = diagnosed({ ...stuck, results: [resultOf("a", "empty")], logLines });

    expect(findings.map(({ id }) => id)).toEqual([`libcni-result-cache-corrupt/${idOf("a")}`]);
    expect(findings[0]?.evidence.filter(({ source }) => source === "logs")).toHaveLength(1);
    expect(findings[0]?.evidence.at(-1)?.fact).toContain("decoding version");
  });

  test("gets no line without a known cause", () => {
    const { findings } = diagnosed({ ...stuck, logLines: [`level=info msg="StopPodSandbox for ${idOf("a")}"`] });

    expect(findings.flatMap(({ evidence }) => evidence).map(({ source }) => source)).not.toContain("logs");
  });

  test("quotes a line without control characters, with a length limit", () => {
    const line = delErrorLine("a", `${UNAUTHORIZED}\u001b[2J${"x".repeat(5000)}`);
    const { findings } = diagnosed({ ...stuck, logLines: [line] });

    const fact = findings[0]?.evidence.at(-1)?.fact ?? "";
    expect(fact).toContain("Unauthorized\\x1b[2J");
    expect(fact.length).toBeLessThan(1000);
  });
});

test("a flood of lines about one sandbox still classifies it", () => {
  const line = delErrorLine("a", UNAUTHORIZED);
  const flood = Array.from({ length: 20_000 }, () => line);

  expect(named(diagnosed({ ...stuck, logLines: flood }))).toEqual([`calico-unauthorized/${idOf("a")}`]);
});
