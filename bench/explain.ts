import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { interleaved, measure, type Summary } from "./measure.ts";
import type { Result } from "./result.ts";

const MEGABYTES = 10;
const ROUNDS = 15;
const SHARE = 5;
const MAX_MS = 500;
const MAX_TIMES_SHARE = SHARE * 1.3;
const MAX_TIMES_MEMORY = 2;

const NEVER_RUN: Summary = { minMs: Number.NaN, medianMs: Number.NaN, peakMb: Number.NaN };

/** The cost of explaining a journal: linear in its length, in bounded memory. */
export async function benchExplain(unghost: string): Promise<Result> {
  const directory = mkdtempSync(join(tmpdir(), "unghost-bench-"));
  const journal = join(directory, "journal.log");
  const fifth = join(directory, "fifth.log");
  const record = join(directory, "record.log");
  try {
    writeFileSync(journal, journalOf(MEGABYTES * 1_048_576));
    writeFileSync(fifth, journalOf((MEGABYTES * 1_048_576) / SHARE));
    writeFileSync(record, journalOf(1));
    const commands = {
      explain: [unghost, "explain", journal],
      "explain of a fifth": [unghost, "explain", fifth],
      "explain of one record": [unghost, "explain", record],
    };
    const runs = Object.entries(commands).map(([name, command]) => [name, () => measure(command, {})] as const);
    const summaries = await interleaved(new Map(runs), ROUNDS);
    const of = (name: keyof typeof commands): Summary => summaries.get(name) ?? NEVER_RUN;
    const rows = [...summaries].map(([name, summary]) => ({ name, summary }));
    const bars = [
      { name: "explain, fastest, ms", value: of("explain").minMs, most: MAX_MS },
      {
        name: "times that of a fifth",
        value: of("explain").minMs / of("explain of a fifth").minMs,
        most: MAX_TIMES_SHARE,
      },
      {
        name: "memory, times that of one record",
        value: of("explain").peakMb / of("explain of one record").peakMb,
        most: MAX_TIMES_MEMORY,
      },
    ];
    return { title: `explain of ${MEGABYTES} MB of journal`, rows, bars, notes: [] };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Nineteen ordinary lines for each failing call, with other ids, pods and times in each. */
export function journalOf(bytes: number): string {
  const lines: string[] = [];
  for (let size = 0, count = 0; size < bytes; count += 1) {
    const text = count % 20 === 0 ? failing(count) : ordinary(count);
    lines.push(text);
    size += text.length + 1;
  }
  return `${lines.join("\n")}\n`;
}

function prefix(count: number): string {
  const second = String(count % 60).padStart(2, "0");
  const minute = String(Math.floor(count / 60) % 60).padStart(2, "0");
  return `Mar 03 09:${minute}:${second} node-1 kubelet[811]: `;
}

function failing(count: number): string {
  const id = count.toString(16).padStart(64, "a");
  return `${prefix(count)}E0303 09:12:44.101010     811 log.go:32] "StopPodSandbox from runtime service failed" err="rpc error: code = Unknown desc = failed to destroy network for sandbox \\"${id}\\": plugin type=\\"kube-ovn\\" failed (delete): RPC failed; request ip return 500 no pod web-${count} in subnet" podSandboxID="${id}"`;
}

function ordinary(count: number): string {
  return `${prefix(count)}I0303 09:12:44.101010     811 kubelet.go:2453] "SyncLoop (PLEG): event for pod" pod="shop/web-${count}" event={"ID":"9f1c${count}","Type":"ContainerStarted","Data":"${count.toString(16).padStart(64, "0")}"}`;
}
