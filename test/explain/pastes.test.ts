import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { grouper } from "../../src/diagnose/explain/group.ts";
import { answersIn } from "../../src/diagnose/explain/lines.ts";
import { renderAnswers } from "../../src/report/explain-answers.ts";

/** What people paste as a whole, each in the format of its source: what must be on top, and for which pod if that is in it. */
const PASTES: readonly (readonly [file: string, expected: string, pod?: string])[] = [
  ["describe.txt", "libcni-result-cache-corrupt"],
  ["get-events.txt", "sandbox-name-held-by-inflight-run", "media/jellyfin-5f6c8d7b9-q2w4r"],
  ["events-json.txt", "multus-daemon-down-or-wedged"],
  ["journald.txt", "hostlocal-ip-leak-after-reboot", "home/mosquitto-6b8c7d9f4-zk7vl"],
  ["klog.txt", "runc-signal-denied", "bank/ledger-0"],
  ["containerd-json.txt", "recover-missing-metadata"],
  ["crio.txt", "ovn-port-not-ready", "openshift-ingress/router-default-6f9d8c5b7-m4n2p"],
  ["talos.txt", "multus-lossy-conflist"],
  ["cloud-logging.txt", "csi-operation-in-flight"],
  ["slack.txt", "calico-unauthorized"],
];

describe("a long paste", () => {
  test.each(PASTES)("%s: %s is on top, at 80 columns", (file, expected, pod) => {
    const counted = grouper();
    for (const answer of answersIn(readFileSync(new URL(`./pastes/${file}`, import.meta.url), "utf8"))) {
      counted.add(answer);
    }
    const groups = counted.groups();
    const [first] = groups;

    expect(first).toMatchObject({ kind: "class", class: expected });
    if (pod !== undefined) expect(first?.pods.map(({ namespace, name }) => `${namespace}/${name}`)).toEqual([pod]);
    const shown = renderAnswers(groups, { width: 80, colour: false, verbose: false });
    const tooWide = shown.split("\n").filter((line) => line.length > 80 && line.trim().includes(" "));
    expect(tooWide).toEqual([]);
  });
});
