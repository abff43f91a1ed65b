import { describe, expect, test } from "vitest";
import type { Attachment, AttachmentRead } from "../../src/guard/attachment.ts";
import { decide, type FailedDel, PASSED_ON_SECONDS, PASSED_ON_TIMES } from "../../src/guard/decide.ts";

function recorded(phase: Attachment["phase"]): AttachmentRead {
  return {
    kind: "read",
    attachment: { phase, boot: "", path: "/opt/cni/bin/bridge", environment: {}, config: "{}", result: undefined },
  };
}

function failedDel(changes: Partial<FailedDel>): FailedDel {
  return {
    failure: { kind: "other", words: "boom" },
    record: recorded("completed"),
    hasRuntimeResult: true,
    failures: 1,
    secondsSinceFirst: 0,
    isReleased: false,
    isQueued: false,
    ...changes,
  };
}

const away = { kind: "daemon-away", words: "connection refused" } as const;

describe("a DEL that its plugin failed", () => {
  test.each<[string, Partial<FailedDel>, ReturnType<typeof decide>]>([
    [
      "succeeds and is queued if ADD never completed",
      { record: recorded("failed"), hasRuntimeResult: false },
      { do: "queue", code: "add-never-completed" },
    ],
    [
      "is queued if ADD was killed, although the daemon is away",
      { record: recorded("started"), hasRuntimeResult: false, failure: away },
      { do: "queue", code: "add-never-completed" },
    ],
    [
      "is queued if there is no trace of an ADD",
      { record: { kind: "missing" }, hasRuntimeResult: false },
      { do: "queue", code: "add-never-completed" },
    ],
    [
      "is passed on if only the runtime has a result: the attachment is older than the guard",
      { record: { kind: "missing" } },
      { do: "pass-on", code: "unknown-error" },
    ],
    [
      "is passed on if the record is damaged, because ADD may have completed",
      { record: { kind: "unparsable" }, hasRuntimeResult: false },
      { do: "pass-on", code: "unknown-error" },
    ],
    ["is passed on while the daemon is away", { failure: away }, { do: "pass-on", code: "daemon-away" }],
    [
      "is queued when the daemon has been away for too long",
      { failure: away, secondsSinceFirst: PASSED_ON_SECONDS },
      { do: "queue", code: "daemon-away-too-long" },
    ],
    [
      "is queued when the plugin has been missing for too long",
      { failure: { kind: "plugin-missing", words: "" }, secondsSinceFirst: PASSED_ON_SECONDS },
      { do: "queue", code: "plugin-missing-too-long" },
    ],
    [
      "is queued after a number of unknown errors, however fast they come",
      { failures: PASSED_ON_TIMES },
      { do: "queue", code: "unknown-error-too-often" },
    ],
    [
      "is not counted in seconds while its error is unknown",
      { failures: PASSED_ON_TIMES - 1, secondsSinceFirst: 9999 },
      { do: "pass-on", code: "unknown-error" },
    ],
    [
      "succeeds if nothing is left",
      { failure: { kind: "state-gone", words: "Link not found" } },
      { do: "succeed", code: "state-gone" },
    ],
    [
      "succeeds if the plugin accepts what ADD was given",
      { retry: "succeeded" },
      { do: "succeed", code: "done-with-recorded-config" },
    ],
    [
      "is judged by the failure with what ADD was given",
      { retry: { kind: "state-gone", words: "Link not found" } },
      { do: "succeed", code: "state-gone" },
    ],
    [
      "succeeds if the plugin has done it before, whatever it lacks now",
      { isReleased: true, record: { kind: "missing" }, failure: away },
      { do: "succeed", code: "released-before" },
    ],
    ["succeeds again while it waits in the queue", { isQueued: true }, { do: "queue", code: "queued-before" }],
  ])("%s", (_, changes, expected) => {
    expect(decide(failedDel(changes))).toEqual(expected);
  });
});
