import * as v from "valibot";

/** The fields of Kubernetes objects that unghost reads; everything else is dropped on receipt. */
const texts = v.nullish(v.record(v.string(), v.string()));

const MetadataSchema = v.object({ name: v.string(), labels: texts, annotations: texts });

const PodVolumeSchema = v.object({
  name: v.string(),
  persistentVolumeClaim: v.nullish(v.object({ claimName: v.string() })),
  ephemeral: v.nullish(v.object({})),
  hostPath: v.nullish(v.object({ path: v.string() })),
});

const ContainerStateSchema = v.nullish(
  v.object({
    waiting: v.nullish(v.object({ reason: v.nullish(v.string()) })),
    running: v.nullish(v.object({ startedAt: v.nullish(v.string()) })),
    terminated: v.nullish(v.object({ exitCode: v.nullish(v.number()), finishedAt: v.nullish(v.string()) })),
  }),
);

const ContainerStatusSchema = v.object({
  restartCount: v.nullish(v.number()),
  state: ContainerStateSchema,
  lastState: ContainerStateSchema,
});

const containerStatuses = v.nullish(v.array(ContainerStatusSchema));

export const PodSchema = v.object({
  metadata: v.object({
    ...MetadataSchema.entries,
    namespace: v.string(),
    uid: v.string(),
    deletionTimestamp: v.nullish(v.string()),
    ownerReferences: v.nullish(v.array(v.object({ kind: v.string(), controller: v.nullish(v.boolean()) }))),
  }),
  spec: v.nullish(
    v.object({
      nodeName: v.nullish(v.string()),
      volumes: v.nullish(v.array(PodVolumeSchema)),
      containers: v.nullish(v.array(v.object({ name: v.string() }))),
    }),
  ),
  status: v.nullish(
    v.object({
      phase: v.nullish(v.string()),
      containerStatuses,
      initContainerStatuses: containerStatuses,
      ephemeralContainerStatuses: containerStatuses,
    }),
  ),
});

export const NodeSchema = v.object({
  metadata: MetadataSchema,
  status: v.nullish(
    v.object({
      nodeInfo: v.nullish(v.object({ machineID: v.nullish(v.string()), bootID: v.nullish(v.string()) })),
      volumesAttached: v.nullish(v.array(v.object({ name: v.string() }))),
      volumesInUse: v.nullish(v.array(v.string())),
    }),
  ),
});

export const NamespaceSchema = v.object({ metadata: MetadataSchema });

type Marked = v.InferOutput<typeof MetadataSchema>;

/** `unghost.dev/ignore: "true"`, as a label or an annotation. */
export function isIgnored({ labels, annotations }: Marked): boolean {
  return labels?.["unghost.dev/ignore"] === "true" || annotations?.["unghost.dev/ignore"] === "true";
}

/** `unghost.dev/paused` with any value but "false", so that a typo in the value still pauses. */
export function isPaused({ labels, annotations }: Marked): boolean {
  return [labels, annotations].some((marks) => (marks?.["unghost.dev/paused"] ?? "false") !== "false");
}

/**
 * The pod uid in its sandboxes. For a static pod it is the hash of its manifest: the API has only a mirror pod with
 * another uid that the runtime does not know.
 */
export function sandboxUid({ metadata }: v.InferOutput<typeof PodSchema>): string {
  const { annotations, uid } = metadata;
  return annotations?.["kubernetes.io/config.mirror"] || annotations?.["kubernetes.io/config.hash"] || uid;
}

/** Names of the claims that a pod mounts, including those generated for ephemeral volumes. */
export function claimsOf({ metadata, spec }: v.InferOutput<typeof PodSchema>): readonly string[] {
  return (spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim) return [persistentVolumeClaim.claimName];
    return ephemeral ? [`${metadata.name}-${name}`] : [];
  });
}
