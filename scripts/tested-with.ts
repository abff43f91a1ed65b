/** Writes what the lab runs into README.md's "Tested with"; with --check it only reports whether it is current. */
import { readFileSync, writeFileSync } from "node:fs";
import { CONTAINERD_VERSIONS, CRIO, containerdRelease, KUBERNETES, MULTUS } from "../lab/runtimes.ts";

const PAGE = "README.md";
const PLACE = /(<!-- tested with, by make docs -->\n)(?:\|.*\n)*/;

const ROWS: Readonly<Record<string, readonly string[]>> = {
  containerd: CONTAINERD_VERSIONS.map((version) => containerdRelease(version).release),
  "CRI-O": [CRIO.release],
  "Kubernetes (control plane and kubelet)": KUBERNETES,
  "multus, thick and thin": MULTUS,
};

const before = readFileSync(PAGE, "utf8");
if (!PLACE.test(before)) throw new Error(`${PAGE} has no place for what unghost is tested with`);
const rows = Object.entries(ROWS).map(([name, releases]) => `| ${name} | ${releases.join(", ")} |\n`);
const page = before.replace(PLACE, (_whole, mark: string) => `${mark}| | |\n|---|---|\n${rows.join("")}`);
if (!process.argv.includes("--check")) writeFileSync(PAGE, page);
else if (page !== before) {
  console.error(`${PAGE} is not current: run \`make docs\` and commit it`);
  process.exitCode = 1;
}
