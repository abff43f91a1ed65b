import { expect, test } from "vitest";
import { until } from "../../lab/poll.ts";
import { MANIFESTS } from "../../lab/systemd/layout.ts";
import { DOWNLOADED } from "../../lab/systemd/node.ts";
import { type BootedNode, HANG_GUARD_MS, systemdNode, WAIT_MS } from "./systemd-node.ts";

const CORRUPT = "libcni-result-cache-corrupt";

interface Explained {
  readonly matches: readonly { readonly class: string }[];
}

test(
  "explain --journal reads the lines of kubelet and containerd from journald, and of no other unit",
  async () => {
    const node = await systemdNode();
    await node.startPods(["web-0"]);
    // Another unit prints containerd's message of another failure.
    const claim = `failed to reserve sandbox name "web_default_1_0": name "web_default_1_0" is reserved for "${"ab".repeat(32)}"`;
    await node.check(["systemd-run", "--wait", "--unit=stranger.service", "echo", claim]);
    await until("it is in journald", WAIT_MS, async () =>
      (await node.journal("--unit=stranger.service")).includes(claim),
    );
    expect(await explain(node)).toEqual({ code: 1, classes: [] });

    await node.check(["sh", "-c", "truncate -s 0 /var/lib/cni/results/*-eth0"]);
    await node.check(["rm", `${MANIFESTS}/web-0.yaml`]);
    const found = await until("the failed removal is in journald", WAIT_MS, async () => {
      const { code, classes } = await explain(node);
      return code === 0 ? classes : undefined;
    });

    expect(found).toEqual([CORRUPT]);
    const { stdout } = await node.exec([DOWNLOADED, "explain", "--journal"]);
    expect(stdout).toMatch(/^Corrupt CNI result cache (?:\(\d+ times\) )?\(B1 /m);
    expect(stdout).toMatch(/unghost heal --dry-run [0-9a-f]{13} shows what would be done/);
  },
  HANG_GUARD_MS,
);

async function explain(node: BootedNode): Promise<{ readonly code: number; readonly classes: readonly string[] }> {
  const { code, stdout, stderr } = await node.exec([DOWNLOADED, "explain", "--journal", "-o", "json"]);
  expect(stderr).toBe("");
  const { matches } = JSON.parse(stdout) as Explained;
  return { code, classes: [...new Set(matches.map((match) => match.class))] };
}
