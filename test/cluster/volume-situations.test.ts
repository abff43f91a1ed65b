import { expect, test } from "vitest";
import { agentOn } from "../../lab/cluster/agent.ts";
import type { Cluster } from "../../lab/cluster/cluster.ts";
import { DRIVER, volumeObjects } from "../../lab/cluster/csi-storage.ts";
import { kubeconfig } from "../../lab/cluster/kubeconfig.ts";
import { until } from "../../lab/poll.ts";
import { attachmentName } from "../../src/kube/attachments.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { reportOf, UNGHOST } from "../e2e/unghost.ts";
import { attachments, podWith } from "./attached-volumes.ts";
import { cluster, HANG_GUARD_MS, scanOn, unghostOn, WAIT_MS } from "./lab-cluster.ts";

const CLASS = "volume-attachment-stuck";
const AT_ONCE = ["--volume-attachment-age", "1s"] as const;
const SLEEP = "exec sleep 1000000000";
const OPERATOR = "/etc/operator.conf";
const STORAGE = "storage.k8s.io/v1";
const FINALIZER = "external-attacher/lab-csi-unghost-dev";

interface Situation {
  readonly volume: string;
  /** The attachments of the volume: the node, and the status. */
  readonly attached: readonly {
    readonly node: "here" | "down" | "gone" | "back" | "forced";
    readonly status: object;
  }[];
  /** What heal answers instead of doing something. */
  readonly advice: RegExp;
  readonly isWaiting: boolean;
}

const YES = { attached: true };

const SITUATIONS: readonly Situation[] = [
  {
    volume: "gone",
    attached: [{ node: "gone", status: YES }],
    advice: /which is gone: .*by force six minutes/,
    isWaiting: true,
  },
  {
    volume: "down",
    attached: [{ node: "down", status: YES }],
    advice: /which is not Ready: .*by force six minutes/,
    isWaiting: true,
  },
  {
    volume: "back",
    attached: [{ node: "back", status: YES }],
    advice: /in use by default\/there: end the pods there/,
    isWaiting: true,
  },
  {
    volume: "forced",
    attached: [{ node: "forced", status: YES }],
    advice: /no pod uses it any more: a pod was deleted by force/,
    isWaiting: true,
  },
  {
    volume: "refused",
    attached: [
      { node: "here", status: { attached: false, attachError: { message: "disk is already attached to vm-7" } } },
    ],
    advice: /the storage has it attached already \(disk is already attached to vm-7\)/,
    isWaiting: true,
  },
  {
    volume: "untaken",
    attached: [{ node: "here", status: { attached: false } }],
    advice: /no attacher has taken it up/,
    isWaiting: true,
  },
  {
    volume: "twice",
    attached: [
      { node: "here", status: YES },
      { node: "back", status: YES },
    ],
    advice: /Delete neither attachment/,
    isWaiting: false,
  },
  {
    volume: "deleted",
    attached: [{ node: "here", status: YES }],
    advice: /deleted already and waits for external-attacher/,
    isWaiting: false,
  },
];

const nodeObject = (name: string) => ({ apiVersion: "v1", kind: "Node", metadata: { name } });
const handleOf = (volume: string) => `vol-${volume}`;

test(
  "volumes that are attached elsewhere, twice, not, or not any more: each is named, and no command touches an attachment",
  async () => {
    const story = await cluster();
    const { node } = story;
    const nameOf = (where: string) => (where === "here" ? node.name : `node-${where}`);
    // Nothing in the cluster changes an attachment from now on: each situation stays as it is made.
    await story.controlPlane.controllerManager.end("TERM");
    await story.apply(["down", "back", "forced"].map((name) => nodeObject(nameOf(name))));
    for (const name of ["down", "back", "forced"]) await setNode(story, nameOf(name), name !== "down");
    await story.apply(SITUATIONS.flatMap(({ volume }) => volumeObjects(volume, handleOf(volume))));
    for (const { volume, attached } of SITUATIONS) {
      for (const { node: where, status } of attached) {
        const name = attachmentName({ driver: DRIVER, handle: handleOf(volume) }, nameOf(where));
        await attach(story, { name, volume, node: nameOf(where), finalizers: volume === "deleted" ? [FINALIZER] : [] });
        await patchStatus(story, "volumeattachment", name, status);
        if (volume === "deleted") await story.kubectl("delete", "volumeattachment", name, "--wait=false");
      }
    }
    await story.apply([podWith("there", nameOf("back"), "back", SLEEP)]);
    await story.apply(
      SITUATIONS.filter(({ isWaiting }) => isWaiting).map(({ volume }) => podWith(volume, node.name, volume, SLEEP)),
    );
    const before = await attachments(story);

    const found = await until("every situation is found", WAIT_MS, async () => {
      const report = await scanOn(node, ...AT_ONCE);
      return report.findings.length >= SITUATIONS.length ? report : undefined;
    });
    for (const { volume, isWaiting } of SITUATIONS) {
      const finding = findingOf(found, volume);
      expect(finding?.class, volume).toBe(CLASS);
      expect(finding?.blockedPods?.map(({ name }) => name) ?? [], volume).toEqual(isWaiting ? [volume] : []);
    }
    // A pod that waits for a dead node is no finding yet, and the node is not called healthy either.
    const early = await scanOn(node, "--volume-attachment-age", "1h");
    expect(early.verdict).toBe("degraded");
    expect(held(early)).toEqual(["down", "gone"]);
    expect(early.podCreation?.able).toBe("yes");

    for (const flags of [[], ["--only", CLASS], ["--allow", CLASS], ["--all-dead"], ["--min-age", "0s"]]) {
      const { actions = [] } = reportOf(await unghostOn(node, "heal", "--yes", "-o", "json", ...AT_ONCE, ...flags));
      for (const { volume, advice } of SITUATIONS) {
        const action = actions.find(({ finding }) => finding === findingOf(found, volume)?.id);
        expect([action?.outcome, action?.reason], volume).toEqual(["skipped", expect.stringMatching(advice)]);
      }
    }
    const agent = await agentOn(node, { agent: { classes: { [CLASS]: { mode: "heal", minAge: "0s" } } } }, [
      ...AT_ONCE,
    ]);
    await agent.start();
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "True");
    await agent.end("TERM");

    await story.apply([silentController()]);
    const { actions } = reportOf(await unghostOn(node, "heal", "--dry-run", "-o", "json", ...AT_ONCE));
    const ofGone = actions?.find(({ finding }) => finding === findingOf(found, "gone")?.id);
    expect(ofGone?.reason).toMatch(/kube-controller-manager, which asks for that, is silent/);

    // Whose claim it is, an agent's role does not show.
    await story.apply([...volumeObjects("unasked", "vol-unasked"), podWith("unasked", node.name, "unasked", SLEEP)]);
    const { server, authority } = story.controlPlane;
    const operator = authority.issue("/O=system:masters/CN=operator");
    await node.lab.writeFile(OPERATOR, kubeconfig(server, authority.cert, operator), 0o600);
    const unasked = await until("the volume that nothing attaches is found", WAIT_MS, async () => {
      const heal = ["heal", "--yes", "--only", CLASS, ...AT_ONCE, "--kubeconfig", OPERATOR, "-o", "json"];
      const report = reportOf(await node.lab.exec([UNGHOST, ...heal]));
      return report.actions?.find(({ reason = "" }) => reason.includes("has not asked for it"));
    });
    expect(unasked.outcome).toBe("skipped");

    const withKubelet = await node.lab.exec([UNGHOST, "scan", "--only", CLASS]);
    expect([withKubelet.code, withKubelet.stdout]).toEqual([
      2,
      expect.stringMatching(/may\s+not list VolumeAttachments/),
    ]);
    const other = await scanOn(node, "--node", nameOf("back"));
    expect(other.kubernetes.error).toContain("is another machine");
    expect(other.findings.filter(({ class: id }) => id === "leftover-container")).toEqual([]);

    expect(await attachments(story)).toEqual(before);
  },
  HANG_GUARD_MS,
);

function findingOf({ findings }: NodeReport, volume: string) {
  return findings.find(({ summary }) => summary.startsWith(`pv-${volume} `));
}

function held({ pending = [] }: NodeReport): readonly string[] {
  return pending.flatMap(({ reason, pod }) => (reason === "creation-held" ? [pod?.name ?? ""] : [])).toSorted();
}

async function patchStatus(story: Cluster, kind: string, name: string, status: object): Promise<void> {
  await story.kubectl("patch", kind, name, "--subresource=status", "--type=merge", `-p=${JSON.stringify({ status })}`);
}

/** Kubelet's part; there is none on these nodes. */
async function setNode(story: Cluster, name: string, isReady: boolean): Promise<void> {
  const volumesInUse = SITUATIONS.filter(({ attached }) => attached.some((one) => name === `node-${one.node}`)).map(
    ({ volume }) => `kubernetes.io/csi/${DRIVER}^${handleOf(volume)}`,
  );
  const conditions = [{ type: "Ready", status: isReady ? "True" : "Unknown", reason: "Lab", message: "" }];
  await patchStatus(story, "node", name, { conditions, volumesInUse });
}

async function attach(
  story: Cluster,
  {
    name,
    volume,
    node,
    finalizers,
  }: Readonly<Record<"name" | "volume" | "node", string>> & { readonly finalizers: readonly string[] },
): Promise<void> {
  await story.apply([
    {
      apiVersion: STORAGE,
      kind: "VolumeAttachment",
      metadata: { name, finalizers },
      spec: { attacher: DRIVER, nodeName: node, source: { persistentVolumeName: `pv-${volume}` } },
    },
  ]);
}

function silentController(): object {
  return {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: "kube-controller-manager", namespace: "kube-system" },
    spec: { holderIdentity: "control-1", leaseDurationSeconds: 15, renewTime: "2020-01-01T00:00:00.000000Z" },
  };
}
