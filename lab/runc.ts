/** In a node. */
export const RUNC_WRAPPER = "/opt/lab/runc";

interface Missing {
  /** Without CAP_SYS_RESOURCE runc may not lower the OOM score of sandboxes. */
  readonly oomScore?: boolean;
  /** No hugetlb cgroup. */
  readonly hugePages?: boolean;
  /** A v2 hierarchy beside v1 has none of the controllers that the machine has bound to v1. */
  readonly controllers?: boolean;
}

/** A runc that does not set what this machine cannot: the runtimes have no setting for it. */
export function tolerantRunc(runc: string, missing: Missing): string {
  const edits = [
    ...(missing.oomScore ? ['s/oomScoreAdj": *\\K-?\\d+/$ENV{OWN_OOM_SCORE}/;'] : []),
    ...(missing.hugePages ? ['s/hugepageLimits": *\\K\\[[^]]*\\]/[]/;'] : []),
    ...(missing.controllers ? [DROP_LIMITS] : []),
  ];
  return `#!/bin/sh
OWN_OOM_SCORE=$(cat /proc/self/oom_score_adj)
export OWN_OOM_SCORE
previous=
for word in "$@"; do
  [ "$previous" != --bundle ] || perl -0pi -e '${edits.join(" ")}' "$word/config.json"
  previous="$word"
done
unset OWN_OOM_SCORE
exec ${runc} "$@"
`;
}

/** In a bundle's config.json, `resources` keeps its rules for devices: v2 has no controller for them. */
const DROP_LIMITS =
  's/"resources": *\\K(\\{(?:[^{}]++|(?1))*\\})/' +
  "my $limits = $1; " +
  '$limits =~ s<"(?:cpu|memory|pids|blockIO|hugepageLimits|unified)": *((\\{(?:[^{}]++|(?2))*\\})|\\[[^]]*\\]),?><>g; ' +
  "$limits =~ s<,(\\s*)\\}><$1}>g; $limits/e;";
