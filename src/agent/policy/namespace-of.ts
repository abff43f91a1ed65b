import type { Finding } from "../../classes/finding.ts";
import type { NodeView } from "../../classes/view.ts";
import { parseSandboxName } from "../../snapshot/ids.ts";

const NAMESPACE_LABEL = "io.kubernetes.pod.namespace";

/** The namespace that a finding is about. Of a sandbox that is no longer listed, its records still tell it. */
export function namespaceOf({ subject }: Finding, view: Pick<NodeView, "about" | "snapshot">): string | undefined {
  if ("pod" in subject && subject.pod !== undefined) return subject.pod.namespace;
  if (subject.type === "volume-attachment") return namespaceOfClaim(subject.name, view);
  if (!("sandboxId" in subject) || subject.sandboxId === undefined) return undefined;
  const { sandbox, metadata, record, storeRecord } = view.about(subject.sandboxId);
  return (
    sandbox?.pod.namespace ??
    parseSandboxName(metadata?.name ?? "")?.namespace ??
    record?.labels[NAMESPACE_LABEL] ??
    storeRecord?.labels[NAMESPACE_LABEL]
  );
}

function namespaceOfClaim(attachment: string, { snapshot }: Pick<NodeView, "snapshot">): string | undefined {
  const { kubernetes } = snapshot;
  if (kubernetes.source !== "api") return undefined;
  return kubernetes.unattached?.find(({ name }) => name === attachment)?.claim?.namespace;
}
