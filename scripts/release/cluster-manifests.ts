import { stringify } from "yaml";
import type { PublishedAt } from "./published-at.ts";

/** For /var/lib/rancher/k3s/server/manifests: the helm controller of k3s and RKE2 installs the chart from it. */
export function k3sHelmChart(version: string, { charts, image }: PublishedAt): string {
  return stringify({
    apiVersion: "helm.cattle.io/v1",
    kind: "HelmChart",
    metadata: { name: "unghost", namespace: "kube-system" },
    spec: {
      chart: `oci://${charts}/unghost`,
      version,
      targetNamespace: "unghost",
      createNamespace: true,
      valuesContent: stringify({ image: { repository: image } }),
    },
  });
}

/** A machine-configuration patch for Talos: the cluster has the agents from its bootstrap on. */
export function talosInlineManifests(manifests: string): string {
  const documents = { cluster: { inlineManifests: [{ name: "unghost", contents: manifests }] } };
  return `# talosctl patch machineconfig --nodes CONTROL-PLANE --patch @FILE\n${stringify(documents, { lineWidth: 0 })}`;
}

/** For a monitoring mixin: what `mixtool` and jsonnet libraries expect as one JSON document. */
export function mixin(rules: unknown, dashboard: unknown): string {
  return JSON.stringify({ prometheusAlerts: rules, grafanaDashboards: { "unghost.json": dashboard } }, undefined, 1);
}
