import type { Tone, Verdict } from "./verdict.ts";

const COLOURS: Readonly<Record<Tone, string>> = { good: "#2f9e64", busy: "#d08a1d", bad: "#d9453c", unsure: "#7d8794" };

/** The verdict in the browser's tab, for those who leave the page open behind others. */
export function labelTab(name: string, { headline, tone }: Verdict, isLost: boolean): void {
  document.title = `${isLost ? "Connection lost" : headline} · ${name} · unghost`;
  const colour = encodeURIComponent(COLOURS[isLost ? "unsure" : tone]);
  const icon = document.querySelector("link[rel=icon]");
  const drawn = icon?.getAttribute("href")?.replace(/fill='[^']*'/, `fill='${colour}'`);
  if (drawn !== undefined) icon?.setAttribute("href", drawn);
}
