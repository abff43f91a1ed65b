import type { Operation } from "../../../src/logs/operation.ts";
import { ID, UID } from "./case.ts";

/** A failing operation whose cause no class has: what failed, and the cause in its writer's words. */
export interface UnknownCause {
  readonly line: string;
  readonly operation: Operation;
  /** Absent if the line does not contain it. */
  readonly cause?: string;
}

const setUp = (cause: string) =>
  `Warning  FailedCreatePodSandBox  5m (x91 over 23m)  kubelet  (combined from similar events): Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "${ID}": ${cause}`;

export const unknownCauses: readonly UnknownCause[] = [
  {
    line: `time="2026-11-15T03:22:07Z" level=error msg="Failed to destroy network for sandbox \\"${ID}\\"" error="exit status 3"`,
    operation: "stop-sandbox",
    cause: "exit status 3",
  },
  {
    line: 'NetworkPlugin cni failed to teardown pod "web-0_shop" network: Link not found',
    operation: "stop-sandbox",
    cause: "Link not found",
  },
  {
    line: `Nov 15 03:22:07 old kubelet[1301]: E1115 03:22:07.58    1301 cni.go:385] Error deleting shop_web-0/${ID} from network cbr0/cbr0: something odd`,
    operation: "stop-sandbox",
    cause: "something odd",
  },
  {
    line: `E1115 kuberuntime_gc.go:177] "Failed to stop sandbox before removing" err="rpc error: code = Unknown desc = failed to destroy network for sandbox \\"${ID}\\": odd" sandboxID="${ID}"`,
    operation: "stop-sandbox",
    cause: "odd",
  },
  {
    line: `kuberuntime_gc.go:153] Failed to stop sandbox "${ID}" before removing: rpc error: code = 2 desc = boom`,
    operation: "stop-sandbox",
    cause: "boom",
  },
  {
    line: `killPodWithSyncResult failed: failed to "KillPodSandbox" for "${UID}" with KillPodSandboxError: "rpc error: code = Unknown desc = something new"`,
    operation: "stop-sandbox",
    cause: "something new",
  },
  {
    line: `failed to forcibly stop sandbox "7c1f0e5ab2d94": failed to destroy network for sandbox "7c1f0e5ab2d94": no idea`,
    operation: "stop-sandbox",
    cause: "no idea",
  },
  {
    line: `[failed to set up sandbox container "${ID}" network for pod "web-0": odd, failed to clean up sandbox container "${ID}" network for pod "web-0": odd]`,
    operation: "create-sandbox",
    cause: "odd",
  },
  {
    line: `failed to destroy network for pod sandbox k8s_web-0_shop_${UID}_0(${ID}): error removing pod shop_web-0 from CNI network "net1": …`,
    operation: "stop-sandbox",
  },
  {
    line: "E0508 cni.go:273] Error deleting network: no such file or directory",
    operation: "cni-del",
    cause: "no such file or directory",
  },
  {
    line: 'Failed to teardown network for pod "ac46745c" using network plugins "cni": no such file or directory',
    operation: "stop-sandbox",
    cause: "no such file or directory",
  },
  { line: '[error] Multus: error in invoke Delegate del - "net-a": odd', operation: "cni-del", cause: "odd" },
  {
    line: 'delegateDel: error invoking DelegateDel - "macvlan": error in getting result from DelNetwork: Link not found',
    operation: "cni-del",
    cause: "Link not found",
  },
  {
    line: 'plugin type="multus" name="multus-cni-network" failed (delete): never seen before',
    operation: "cni-del",
    cause: "never seen before",
  },
  { line: setUp('plugin type="late" failed (add): refused'), operation: "create-sandbox", cause: "refused" },
  {
    line: `level=fatal msg="Failed to run CRI service" error="failed to recover state: something else"`,
    operation: "recover",
    cause: "something else",
  },
  {
    line: 'E1115 03:22:07.1 811 log.go:32] "StopContainer from runtime service failed" err="rpc error: code = Unkno>',
    operation: "stop-container",
  },
  {
    line: `Warning FailedMount 2m kubelet MountVolume.SetUp failed for volume "pvc-1" : rpc error: code = Internal desc = the moon is full`,
    operation: "mount",
    cause: "the moon is full",
  },
];
