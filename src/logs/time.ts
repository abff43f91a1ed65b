/** klog: severity, month and day, local time. */
const KLOG = /^[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{3})/;
/** containerd and CRI-O, as text or as JSON. */
const LOGRUS = /^(?:\{.{0,2000}?"time":|time=)"(\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:\d\d))"/;
/** kubelet with --logging-format=json. */
const KLOG_JSON = /^\{"ts":(\d{10,13}(?:\.\d{1,6})?),/;

/** The time in a line, as its writer recorded it. */
export function lineTime(line: string, now: Date): Date | undefined {
  const klog = KLOG.exec(line);
  if (klog !== null) return klogTime(klog, now);
  const logrus = LOGRUS.exec(line)?.[1];
  if (logrus !== undefined) return validDate(new Date(logrus));
  const json = KLOG_JSON.exec(line)?.[1];
  return json === undefined ? undefined : validDate(new Date(Number(json)));
}

const DAY_MS = 86_400_000;

/** klog omits the year: a date more than a day in the future is from last year. */
function klogTime(match: RegExpExecArray, now: Date): Date | undefined {
  const [month = 0, day = 0, hours = 0, minutes = 0, seconds = 0, milliseconds = 0] = match.slice(1).map(Number);
  const at = new Date(now.getFullYear(), month - 1, day, hours, minutes, seconds, milliseconds);
  if (at.getTime() - now.getTime() > DAY_MS) at.setFullYear(now.getFullYear() - 1);
  return validDate(at);
}

function validDate(date: Date): Date | undefined {
  return Number.isNaN(date.getTime()) ? undefined : date;
}
