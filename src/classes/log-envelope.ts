/** Who wrote a log line, and when, as its envelope shows. */
export interface Envelope {
  readonly by: "kubelet" | "runtime";
  readonly at: Date | undefined;
}

/** klog: severity, month and day, local time with microseconds, thread, source file. */
const KLOG = /^[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{3})\d{0,6}\s+\d+ [\w.-]+\.go:\d+\]/;
/** containerd and CRI-O: logfmt that starts with the time. */
const LOGFMT = /^time="(\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:\d\d))" level=/;
/** kubelet with --logging-format=json. */
const KLOG_JSON = /^\{"ts":(\d{10,13}(?:\.\d{1,6})?),"caller":"/;

/** undefined for a line in nobody's envelope: such a line is not believed. */
export function envelopeOf(line: string, now: Date): Envelope | undefined {
  const klog = KLOG.exec(line);
  if (klog !== null) return { by: "kubelet", at: klogTime(klog, now) };
  const logfmt = LOGFMT.exec(line);
  if (logfmt !== null) return { by: "runtime", at: validDate(new Date(logfmt[1] ?? "")) };
  const json = KLOG_JSON.exec(line);
  if (json !== null) return { by: "kubelet", at: validDate(new Date(Number(json[1]))) };
  return undefined;
}

const DAY_MS = 86_400_000;

/** klog leaves out the year: a date that lies more than a day ahead was last year's. */
function klogTime(match: RegExpExecArray, now: Date): Date | undefined {
  const [month = 0, day = 0, hours = 0, minutes = 0, seconds = 0, milliseconds = 0] = match.slice(1).map(Number);
  const at = new Date(now.getFullYear(), month - 1, day, hours, minutes, seconds, milliseconds);
  if (at.getTime() - now.getTime() > DAY_MS) at.setFullYear(now.getFullYear() - 1);
  return validDate(at);
}

function validDate(date: Date): Date | undefined {
  return Number.isNaN(date.getTime()) ? undefined : date;
}
