const FIRST_MS = 500;
const LONGEST_MS = 30_000;

/** How long to leave a server alone after so many failures in a row: twice as long each time, never all clients at once. */
export function backOffMs(failures: number, retryAfterSeconds: number = 0): number {
  const longest = Math.min(FIRST_MS * 2 ** failures, LONGEST_MS);
  return retryAfterSeconds * 1000 + longest * (0.5 + Math.random() / 2);
}
