import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Link, listen } from "../../../src/agent/page/live.ts";

/** One opened stream: its events, and whether the page still uses it. */
class FakeStream extends EventTarget {
  closed = false;
  hear(data: string): void {
    this.dispatchEvent(new MessageEvent("message", { data }));
  }
  fail(): void {
    this.dispatchEvent(new Event("error"));
  }
  close(): void {
    this.closed = true;
  }
}

function connected() {
  const streams: FakeStream[] = [];
  const links: Link[] = [];
  const heard: string[] = [];
  const opening = class extends FakeStream {
    constructor() {
      super();
      streams.push(this);
    }
  };
  vi.stubGlobal("EventSource", opening);
  listen({ onLink: (link) => links.push(link), onMessage: (data) => heard.push(data) });
  return { streams, links, heard };
}

describe("the connection to the agent", () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: 1_000_000 });
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  test("is live with the first message", () => {
    const { streams, links, heard } = connected();

    streams[0]?.hear("one");

    expect([links, heard]).toEqual([[{ kind: "live" }], ["one"]]);
  });

  test("shows a broken connection with the time of the last message, and reconnects", () => {
    const { streams, links, heard } = connected();
    streams[0]?.hear("one");
    vi.advanceTimersByTime(5000);
    streams[0]?.fail();
    vi.advanceTimersByTime(2000);
    streams[1]?.hear("two");

    expect(links).toEqual([{ kind: "live" }, { kind: "lost", lastSeenMs: 1_000_000 }, { kind: "live" }]);
    expect(heard).toEqual(["one", "two"]);
    expect(streams.map(({ closed }) => closed)).toEqual([true, false]);
  });

  test("retries until it succeeds, one attempt at a time", () => {
    const { streams, links } = connected();
    for (let tries = 0; tries < 50; tries += 1) {
      streams.at(-1)?.fail();
      vi.advanceTimersByTime(1000);
    }

    expect(streams).toHaveLength(51);
    expect(streams.filter(({ closed }) => !closed)).toHaveLength(1);
    expect(links.at(-1)).toEqual({ kind: "lost" });
  });

  test("replaces a silent connection without an alarm", () => {
    const { streams, links } = connected();
    streams[0]?.hear("one");
    vi.advanceTimersByTime(149_000);
    streams[0]?.hear("two");
    vi.advanceTimersByTime(149_000);
    expect(streams).toHaveLength(1);
    vi.advanceTimersByTime(2000);

    expect(streams.map(({ closed }) => closed)).toEqual([true, false]);
    expect(links.map(({ kind }) => kind)).toEqual(["live", "live"]);
  });
});
