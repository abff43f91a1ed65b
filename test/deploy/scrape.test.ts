import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { run } from "../../lab/command.ts";
import { ensurePromtool } from "../../lab/prometheus.ts";

interface ScrapeConfig {
  readonly scrape_configs: readonly {
    readonly job_name: string;
    readonly metric_relabel_configs?: readonly { readonly regex: string; readonly action: string }[];
  }[];
}

const STATIC = "deploy/prometheus/scrape-static.yaml";
const KUBERNETES = "deploy/prometheus/scrape-kubernetes.yaml";

/** What the rules use, as `__name__;grpc_method` if the second label is used. */
const NEEDED = {
  unghost: ["unghost_findings"],
  containerd: [
    "containerd_cri_network_plugin_operations_errors_total_total;",
    "grpc_server_handled_total;RunPodSandbox",
    "grpc_server_handled_total;StopPodSandbox",
    "grpc_server_handled_total;RemovePodSandbox",
  ],
  kubelet: ["kubelet_runtime_operations_errors_total", "kubelet_run_podsandbox_errors_total", "kubelet_working_pods"],
};
const LEFT_OUT = {
  unghost: [],
  containerd: [
    "container_memory_usage_bytes;",
    "grpc_server_handled_total;ListPodSandbox",
    "grpc_server_handled_total;",
  ],
  kubelet: ["kubelet_http_requests_total", "rest_client_requests_total"],
};

const promtool = await ensurePromtool();
const skipped = promtool.available ? "" : `: skipped, ${promtool.reason}`;

// Debian's promtool is built without Kubernetes' discovery and does not support the other file's keys.
test.skipIf(!promtool.available)(`the static configuration is valid, checked by promtool${skipped}`, async () => {
  if (!promtool.available) throw new Error(promtool.reason);

  const { code, stdout, stderr } = await run([promtool.path, "check", "config", "--syntax-only", STATIC]);

  expect(code, stdout + stderr).toBe(0);
});

describe.each([STATIC, KUBERNETES])("%s", (file) => {
  const { scrape_configs: jobs } = parse(readFileSync(file, "utf8")) as ScrapeConfig;

  test.each(["unghost", "containerd", "kubelet"] as const)(
    "keeps of %s what the rules need, and little else",
    (name) => {
      const job = jobs.find(({ job_name }) => job_name === name);
      const keeps = job?.metric_relabel_configs ?? [];
      const isKept = (series: string): boolean => keeps.every(({ regex }) => new RegExp(`^(?:${regex})$`).test(series));

      expect(job).toBeDefined();
      expect(keeps.filter(({ action }) => action !== "keep")).toEqual([]);
      expect(NEEDED[name].filter((series) => !isKept(series))).toEqual([]);
      expect(LEFT_OUT[name].filter(isKept)).toEqual([]);
    },
  );
});
