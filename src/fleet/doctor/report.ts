import { type Checked, doctorVerdict, neededAndMissing, renderChecks } from "../../doctor/doctor-report.ts";
import { printable } from "../../host/text.ts";
import { count, type TextOptions } from "../../report/words.ts";
import type { Printable } from "../output.ts";

export interface FleetDoctorReport extends Required<Checked> {
  readonly version: string;
  readonly server: string;
  readonly nodes: number;
}

/** As `unghost doctor`: 0 everything needed is there, 1 something is missing. */
export function doctorExitCode(report: FleetDoctorReport): 0 | 1 {
  return neededAndMissing(report).length > 0 ? 1 : 0;
}

/** The checks are the items; the names are those of all nodes that a failed check or a risk is about. */
export function printableDoctor(report: FleetDoctorReport, options: TextOptions): Printable {
  const { version, server, nodes, checks, risks } = report;
  const concerned = [...checks, ...risks].flatMap((one) => one.nodes ?? []);
  return {
    document: {
      apiVersion: "unghost.dev/v1",
      kind: "FleetDoctorReport",
      version,
      server,
      nodes,
      items: checks,
      risks,
    } as Printable["document"],
    names: [...new Set(concerned)].map((name) => `node/${name}`),
    table: (isWide) => {
      const verbose = isWide || options.verbose;
      const head = [
        `${doctorVerdict(report, options)} in the cluster ${printable(server)}`,
        `unghost ${version}; ${count(nodes, "node")}`,
      ];
      return renderChecks(head, report, { ...options, verbose })
        .trimEnd()
        .split("\n");
    },
  };
}
