import { expect, test } from "vitest";
import { Outbox } from "../../../src/runtime/http2/outbox.ts";

function recorded() {
  const written: string[] = [];
  return { written, outbox: new Outbox({ write: (bytes) => void written.push(Buffer.from(bytes).toString()) }) };
}

test("frames of one turn are written together, and those of the next turn after them", async () => {
  const { outbox, written } = recorded();

  for (const text of ["a", "b", "c"]) outbox.send(Buffer.from(text));
  await Promise.resolve();
  outbox.send(Buffer.from("d"));
  await Promise.resolve();

  expect(written).toEqual(["abc", "d"]);
});

test("urgent frames are written at once, and once", async () => {
  const { outbox, written } = recorded();

  outbox.send(Buffer.from("a"));
  outbox.flush();
  expect(written).toEqual(["a"]);
  await Promise.resolve();

  expect(written).toEqual(["a"]);
});
