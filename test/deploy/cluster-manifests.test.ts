import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { run } from "../../lab/command.ts";
import { k3sHelmChart, mixin, talosInlineManifests } from "../../scripts/release/cluster-manifests.ts";
import { publishedAt } from "../../scripts/release/published-at.ts";
import { COMMAND_NAMES } from "../../src/cli/commands/index.ts";

const PLACES = publishedAt({ RELEASE_HOST: "registry.company.org/team" }, "1.2.3");

test("k3s installs the published chart with its published image", () => {
  const { spec } = parse(k3sHelmChart("1.2.3", PLACES));

  expect(spec).toMatchObject({ chart: "oci://registry.company.org/team/charts/unghost", version: "1.2.3" });
  expect(parse(spec.valuesContent)).toEqual({ image: { repository: "registry.company.org/team/unghost" } });
});

test("Talos gets every object of the manifests, its namespace with its PodSecurity label", () => {
  const manifests = readFileSync("deploy/kubernetes/unghost.yaml", "utf8");
  const patch = parse(talosInlineManifests(manifests));
  const [{ contents }] = patch.cluster.inlineManifests;

  expect(parseAllDocuments(contents).map((one) => one.toJS())).toEqual(
    parseAllDocuments(manifests).map((one) => one.toJS()),
  );
  expect(contents).toContain("pod-security.kubernetes.io/enforce: privileged");
});

test("the mixin has the rules and the dashboard", () => {
  const made = JSON.parse(mixin({ groups: [] }, { uid: "unghost" }));

  expect(made).toEqual({ prometheusAlerts: { groups: [] }, grafanaDashboards: { "unghost.json": { uid: "unghost" } } });
});

test("the plugins of k9s, sos and must-gather call commands that exist", async () => {
  const texts = ["deploy/k9s/plugins.yaml", "deploy/sos/unghost.py", "deploy/must-gather/gather_unghost"].map((file) =>
    readFileSync(file, "utf8"),
  );
  const k9s = parse(texts[0] ?? "") as { plugins: Record<string, { scopes: string[]; command: string }> };
  const called = texts
    .slice(1)
    .flatMap((text) => [...text.matchAll(/(?:'|-- )unghost (\w+)/g)].map(([, name = ""]) => name));
  const checked = await run(["sh", "-n", "deploy/must-gather/gather_unghost"]);

  expect(Object.values(k9s.plugins).map(({ scopes, command }) => [scopes, command])).toEqual([
    [["pods"], "sh"],
    [["nodes"], "sh"],
  ]);
  expect(called.length).toBeGreaterThan(5);
  expect(called.filter((name) => !COMMAND_NAMES.includes(name))).toEqual([]);
  expect(checked).toMatchObject({ code: 0, stderr: "" });
});
