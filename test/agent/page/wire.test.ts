import { expect, test } from "vitest";
import { ghostState, onTheWire, sighting } from "./agent-states.ts";

test("invisible and bidirectional characters are shown as replacements", () => {
  const name = "web\u202Egnp.exe\u0000\u200B<b>";

  const [shown] = onTheWire(ghostState([sighting({ pod: name })])).sightings;

  expect(shown?.finding.subject.pod?.name).toBe("web\uFFFDgnp.exe\uFFFD\uFFFD<b>");
});
