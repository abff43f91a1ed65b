import fc from "fast-check";

type Form = (line: string) => string;

export const escaped: Form = (line) => line.replaceAll("\\", "\\\\").replaceAll('"', '\\"');

/** The envelopes in which one error is met. */
export const ENVELOPES: Readonly<Record<string, Form>> = {
  "escaped once": escaped,
  "escaped twice": (line) => escaped(escaped(line)),
  "escaped three times": (line) => escaped(escaped(escaped(line))),
  klog: (line) =>
    `E1115 03:22:07.101010     811 pod_workers.go:1298] "Error syncing pod, skipping" err="${escaped(line)}"`,
  logfmt: (line) => `time="2026-11-15T03:22:07.1Z" level=error msg="failed" error="${escaped(line)}"`,
  json: (line) => JSON.stringify({ level: "error", msg: line, time: "2026-11-15T03:22:07Z" }),
  "json in journald": (line) => `Nov 15 03:22:07 node1 k3s[811]: ${JSON.stringify({ ts: 1, error: line })}`,
  talos: (line) => `10.0.0.7: ${JSON.stringify({ error: line, level: "error", msg: "x" })}`,
  journald: (line) => `Nov 15 03:22:07 node1 kubelet[811]: ${line}`,
  "kubectl describe": (line) => `  Warning  Failed  2m (x3 over 7m)  kubelet  ${line}`,
  "kubectl get events": (line) => `shop   2m   Warning   FailedKillPod   pod/web-0   ${line}`,
  crictl: (line) => `FATA[0002] ${line}`,
  "quoted in a reply": (line) => `> ${line}`,
  coloured: (line) => `\u001b[31mERROR\u001b[0m ${line}`,
  "quotes eaten by a shell": (line) => line.replaceAll('"', ""),
  "quotes made typographic": (line) => line.replaceAll(/"([^"]*)"/g, "“$1”"),
  html: (line) => line.replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;"),
  "windows line end": (line) => `${line}\r`,
};

/** More envelopes, which take part in the generated forms only. */
const MORE: readonly Form[] = [
  (line) => `2026-11-15T03:22:07.123456+01:00 node1 kubelet[811]: ${line}`,
  (line) => `kubelet.log:18877:E1115 03:22:07.6 5236 kuberuntime_sandbox.go:70] ${line}`,
  (line) => JSON.stringify({ MESSAGE: line, _SYSTEMD_UNIT: "containerd.service", PRIORITY: "3" }),
  (line) => JSON.stringify({ textPayload: line, severity: "ERROR", resource: { type: "k8s_node" } }),
  (line) => `    "message": ${JSON.stringify(line)},`,
  (line) => `- message: ${JSON.stringify(line)}`,
  (line) => `user: warning: [2026-11-15T03:22:07.517733048Z]: [talos] ${line}`,
  (line) => `  * ${line}`,
  (line) => `**${line}**`,
  (line) => `\`${line}\``,
  (line) => `エラー: ${line}`,
  (line) => `Ошибка — ${line} — что делать?`,
];

export function brokenAt(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (let start = 0; start < text.length; start += width) lines.push(text.slice(start, start + width));
  return lines;
}

export function brokenAtWords(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + word.length >= width) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}

const ID = /\b(?=\d*[a-f])[0-9a-f]{12,64}\b/g;
const UUID = /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;

const elision = fc.constantFrom<Form>(
  (line) => line,
  (line) => line.replaceAll(UUID, "<uid>").replaceAll(ID, "<id>"),
  (line) => line.replaceAll(UUID, "xxxxxxxx").replaceAll(ID, "xxxx"),
  (line) => line.replaceAll(ID, (id) => `${id.slice(0, 6)}…`),
  (line) => line.replaceAll(ID, "****"),
);

const wrapping = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Form>((line) => line) },
  fc.integer({ min: 60, max: 200 }).map(
    (width): Form =>
      (line) =>
        brokenAt(line, width).join("\n"),
  ),
  fc.integer({ min: 60, max: 200 }).map(
    (width): Form =>
      (line) =>
        brokenAtWords(line, width).join("\n"),
  ),
);

const surrounding = fc.constantFrom<Form>(
  (line) => line,
  (line) => `$ journalctl -u kubelet | tail -1\n\n${line}\n\nAny idea?`,
  (line) => `Nach dem Neustart starten die Pods nicht mehr:\n\n${line}\n`,
  (line) => `\`\`\`\n${line}\n\`\`\``,
);

const cut = fc.oneof(
  { weight: 4, arbitrary: fc.constant(undefined) },
  fc.record({ share: fc.double({ min: 0.3, max: 0.99, noNaN: true }), mark: fc.constantFrom(">", "…", "...") }),
);

/** One error in a form that people paste it in. */
export const pasted = fc
  .record({ envelope: fc.constantFrom(...Object.values(ENVELOPES), ...MORE), elision, wrapping, surrounding, cut })
  .map(({ envelope, elision: elide, wrapping: wrap, surrounding: surround, cut: end }) => ({
    isCut: end !== undefined,
    form: (line: string): string => {
      const whole = envelope(elide(line));
      const seen =
        end === undefined ? whole : whole.slice(0, Math.floor(whole.length * end.share)).trimEnd() + end.mark;
      return surround(wrap(seen));
    },
  }));
