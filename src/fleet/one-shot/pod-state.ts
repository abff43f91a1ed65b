import * as v from "valibot";
import { printable } from "../../host/text.ts";
import { type Failure, otherWay } from "./failure.ts";
import { type OneShot, oneShotArgs } from "./job.ts";
import type { Target } from "./target.ts";

const ContainerState = v.object({
  waiting: v.optional(v.object({ reason: v.optional(v.string()), message: v.optional(v.string()) })),
  running: v.optional(v.object({})),
  terminated: v.optional(v.object({ exitCode: v.number(), reason: v.optional(v.string()) })),
});

export const PodSchema = v.object({
  metadata: v.object({
    name: v.string(),
    ownerReferences: v.optional(v.array(v.object({ uid: v.string(), controller: v.optional(v.boolean(), false) })), []),
  }),
  spec: v.optional(
    v.object({
      nodeName: v.optional(v.string()),
      hostPID: v.optional(v.boolean()),
      containers: v.array(
        v.object({
          args: v.optional(v.array(v.string()), []),
          securityContext: v.nullish(v.object({ privileged: v.optional(v.boolean()) })),
        }),
      ),
    }),
  ),
  status: v.optional(
    v.object({
      phase: v.optional(v.string()),
      reason: v.optional(v.string()),
      message: v.optional(v.string()),
      /** Set by kubelet when it takes the pod. */
      startTime: v.optional(v.string()),
      containerStatuses: v.nullish(v.array(v.object({ state: v.optional(ContainerState) })), []),
    }),
  ),
});
export type Pod = v.InferOutput<typeof PodSchema>;

/**
 * The pod that the Job made of what it was given, on this node. Who may create another such pod is root there without
 * our help: it is privileged, too.
 */
export function isOurs({ metadata, spec }: Pod, jobUid: string | undefined, shot: OneShot): boolean {
  // Every API server gives its objects a uid.
  if (jobUid === undefined) return true;
  const [container] = spec?.containers ?? [];
  return (
    metadata.ownerReferences.some(({ uid, controller }) => controller && uid === jobUid) &&
    spec?.nodeName === shot.node &&
    spec.hostPID === true &&
    container?.securityContext?.privileged === true &&
    container.args.join("\n") === oneShotArgs(shot).join("\n")
  );
}

export type PodState =
  | { readonly kind: "unseen" | "starting"; readonly detail: string }
  | { readonly kind: "running" }
  | { readonly kind: "ended"; readonly code: number }
  | { readonly kind: "failed"; readonly failure: Failure };

const NO_IMAGE = new Set(["ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"]);
const NO_CONTAINER = new Set(["CreateContainerConfigError", "CreateContainerError", "RunContainerError"]);

export function oneShotState({ status }: Pod, shot: OneShot, target: Target): PodState {
  const [container] = status?.containerStatuses ?? [];
  const { waiting, running, terminated } = container?.state ?? {};
  if (status?.reason === "DeadlineExceeded") return failedFor(deadlineExceeded(shot, target));
  if (terminated !== undefined) return { kind: "ended", code: terminated.exitCode };
  if (running !== undefined) return { kind: "running" };
  const { reason = "", message = "" } = waiting ?? {};
  const reported = printable([reason, message].filter(Boolean).join(": "));
  if (NO_IMAGE.has(reason)) {
    return failedFor({
      code: "image",
      message: `the image ${shot.image} cannot be pulled (${reported})`,
      next: "name one that this cluster's nodes can pull with --image, or import it into the node's runtime",
    });
  }
  if (NO_CONTAINER.has(reason)) {
    return failedFor({
      code: "not-started",
      message: `its container does not start (${reported})`,
      next: otherWay(shot, target, { kubelet: false }),
    });
  }
  if (status?.phase === "Failed") {
    const why = printable([status.reason, status.message].filter(Boolean).join(": ")) || "without a reason";
    return failedFor({
      code: "not-admitted",
      message: `kubelet does not run the pod (${why})`,
      next: otherWay(shot, target, { kubelet: false }),
    });
  }
  return { kind: status?.startTime === undefined ? "unseen" : "starting", detail: reported };
}

export function deadlineExceeded(shot: OneShot, target: Target): Failure {
  return {
    code: "deadline",
    message: `unghost did not end within ${shot.deadlineSeconds} s`,
    next: otherWay(shot, target),
  };
}

function failedFor(failure: Failure): PodState {
  return { kind: "failed", failure };
}
