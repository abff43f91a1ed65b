import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { TimelinePoint } from "../state/state.ts";
import type { TimelineRun } from "../state/state-json.ts";
import { live } from "./live.ts";
import { Definitions, Fold } from "./parts.tsx";
import {
  type Chart,
  chartOf,
  dayInWords,
  hourLines,
  LANES,
  minuteInWords,
  pointsOf,
  rangeInWords,
  startOf,
} from "./timeline.ts";
import { DAY } from "./words.ts";

export function Timeline({ runs }: { readonly runs: readonly TimelineRun[] }) {
  const points = useMemo(() => pointsOf(runs), [runs]);
  const [pointed, setPointed] = useState<number | undefined>(undefined);
  const at = points.find(({ minute }) => minute === pointed);
  const words = `The last 24 hours: ${dayInWords(points, live().nodeClock / 1000)}.`;
  return (
    <section aria-labelledby="timeline">
      <h2 id="timeline">{rangeInWords(points, live().nodeClock / 1000)}</h2>
      <div class="card">
        <TimelineChart points={points} label={words} onPointed={setPointed} />
        <p class="quiet">{at === undefined ? words : `${DAY.format(at.minute * 1000)}: ${minuteInWords(at)}.`}</p>
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
  return <Definitions rows={hours.map(({ start, words }) => ({ name: DAY.format(start * 1000), value: words }))} />;
}

interface TimelineChartProps {
  readonly points: readonly TimelinePoint[];
  readonly label: string;
  /** The minute that the pointer is at; undefined when it has left. */
  readonly onPointed: (minute: number | undefined) => void;
}

const HEIGHT = 190;
const AXIS_WIDTH = 64;
/** What happens now must not be cut off by the edge. */
const MARGIN = 0.007;

/** A curve of the ghosts, and below it one lane of marks for each kind of event. */
function TimelineChart({ points, label, onPointed }: TimelineChartProps) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const draw = () => drawn(element, chartOf(points), onPointed);
    let plot = draw();
    const redraw = () => {
      plot.destroy();
      plot = draw();
    };
    const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", redraw);
    return () => {
      resized.disconnect();
      dark.removeEventListener("change", redraw);
      plot.destroy();
    };
  }, [points]);
  return <div class="chart" role="img" aria-label={label} ref={place} />;
}

function drawn(element: HTMLElement, chart: Chart, onPointed: TimelineChartProps["onPointed"]): uPlot {
  const style = getComputedStyle(element);
  const colour = (name: string): string => style.getPropertyValue(name);
  const now = live().nodeClock / 1000;
  const from = startOf(chart.minutes, now);
  const to = now + (now - from) * MARGIN;
  const font = `12px ${style.fontFamily}`;
  const laneColours = ["--good", "--bad", "--busy", "--unsure"].map(colour);
  const bottom = (chart.lanes.at(-1) ?? 0) - chart.top * 0.2;
  const axis = { stroke: colour("--quiet"), font, ticks: { show: false } } satisfies uPlot.Axis;
  return new uPlot(
    {
      width: element.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      hooks: {
        setCursor: [({ cursor }) => onPointed(cursor.idx === null ? undefined : chart.minutes[cursor.idx ?? -1])],
      },
      scales: { x: { time: true, range: [from, to] }, y: { range: [bottom, chart.top * 1.12] } },
      axes: [
        { ...axis, size: 28, grid: { show: false }, values: (_plot, seconds) => seconds.map(hourOfDay) },
        {
          ...axis,
          size: AXIS_WIDTH,
          grid: { stroke: colour("--line"), width: 1 },
          splits: () => [...chart.lanes.toReversed(), 0, Math.ceil(chart.top / 2), chart.top],
          values: (_plot, places) => places.map((place) => (place < 0 ? laneName(chart, place) : String(place))),
        },
      ],
      series: [
        {},
        {
          stroke: colour("--busy"),
          fill: colour("--busy-tint"),
          fillTo: 0,
          width: 1.5,
          points: { show: false },
          paths: uPlot.paths.stepped?.({ align: 1 }) ?? (() => null),
        },
        ...laneColours.map((fill) => ({ paths: () => null, points: { show: true, size: 7, width: 0, fill } })),
      ],
    },
    [[...chart.minutes], [...chart.ghosts], ...chart.marks.map((marks) => [...marks])],
    element,
  );
}

function laneName(chart: Chart, place: number): string {
  return LANES[chart.lanes.indexOf(place)]?.label ?? "";
}

const HOUR_OF_DAY = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });

function hourOfDay(seconds: number): string {
  return HOUR_OF_DAY.format(seconds * 1000);
}
