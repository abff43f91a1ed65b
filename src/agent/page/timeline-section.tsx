import { useMemo, useState } from "preact/hooks";
import type { TimelinePoint } from "../state.ts";
import { pointsOf, type TimelineRun } from "../timeline-runs.ts";
import { Fold } from "./fold.tsx";
import { live } from "./live.ts";
import { dayInWords, hourLines, minuteInWords } from "./timeline.ts";
import { TimelineChart } from "./timeline-chart.tsx";

const TIME = new Intl.DateTimeFormat(undefined, {
  weekday: "short",
  hour: "2-digit",
  minute: "2-digit",
  hour12: false,
});

export function Timeline({ runs }: { readonly runs: readonly TimelineRun[] }) {
  const points = useMemo(() => pointsOf(runs), [runs]);
  const [pointed, setPointed] = useState<number | undefined>(undefined);
  const at = points.find(({ minute }) => minute === pointed);
  const words = `The last 24 hours: ${dayInWords(points, live().nodeClock / 1000)}.`;
  return (
    <section aria-labelledby="timeline">
      <h2 id="timeline">Last 24 hours</h2>
      <div class="card">
        <TimelineChart points={points} label={words} onPointed={setPointed} />
        <p class="quiet">{at === undefined ? words : `${TIME.format(at.minute * 1000)}: ${minuteInWords(at)}.`}</p>
        <Fold class="hours" summary="Hour by hour">
          {() => <Hours points={points} />}
        </Fold>
      </div>
    </section>
  );
}

function Hours({ points }: { readonly points: readonly TimelinePoint[] }) {
  const hours = hourLines(points, live().nodeClock / 1000);
  if (hours.length === 0) return <p class="quiet">No ghosts, heals or restarts in the last 24 hours.</p>;
  return (
    <dl>
      {hours.map(({ start, words }) => (
        <div key={start}>
          <dt>{TIME.format(start * 1000)}</dt>
          <dd>{words}</dd>
        </div>
      ))}
    </dl>
  );
}
