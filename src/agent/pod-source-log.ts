import type { Kubernetes } from "../snapshot/types.ts";

/**
 * Says who tells which pods belong on this node when that changes, and not each time it is asked. Nothing is said of a
 * node without a cluster.
 */
export function logPodSourceChanges(say: (message: string) => void): (kubernetes: Kubernetes) => void {
  let before = "api, and everything";
  return ({ source, error }) => {
    const now = `${source}, ${error === undefined ? "and everything" : "but not everything"}`;
    if (now === before) return;
    if (source === "api" || error !== undefined) say(inWords(source, error));
    before = now;
  };
}

function inWords(source: Kubernetes["source"], error: string | undefined): string {
  if (error === undefined) return "the API server tells again which pods belong here";
  switch (source) {
    case "api":
      return `the API server tells which pods belong here, but not everything about them: ${error}`;
    case "kubelet":
      return `kubelet tells which pods belong here until the API server does: ${error}`;
    case "none":
      return `nobody tells which pods belong here: ${error}`;
  }
}
