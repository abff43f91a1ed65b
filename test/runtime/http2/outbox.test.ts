import { Socket } from "node:net";
import { expect, test, vi } from "vitest";
import { Outbox } from "../../../src/runtime/http2/outbox.ts";

function recorded() {
  const socket = new Socket();
  const written: string[] = [];
  vi.spyOn(socket, "write").mockImplementation((bytes) => written.push(String(bytes)) > 0);
  return { socket, written, outbox: new Outbox(socket) };
}

test("frames of one turn are written together, and those of the next turn after them", async () => {
  const { outbox, written } = recorded();

  for (const text of ["a", "b", "c"]) outbox.send(Buffer.from(text));
  await Promise.resolve();
  outbox.send(Buffer.from("d"));
  await Promise.resolve();

  expect(written).toEqual(["abc", "d"]);
});

test("frames that cannot wait are written at once, and once", async () => {
  const { outbox, written } = recorded();

  outbox.send(Buffer.from("a"));
  outbox.flush();
  expect(written).toEqual(["a"]);
  await Promise.resolve();

  expect(written).toEqual(["a"]);
});

test("nothing is written to a socket that is gone", async () => {
  const { socket, outbox, written } = recorded();

  outbox.send(Buffer.from("a"));
  socket.destroy();
  await Promise.resolve();

  expect(written).toEqual([]);
});
