import { expect, test } from "vitest";
import { parseEndpoint } from "../../src/runtime/find.ts";

test.each([
  ["unix:///run/x.sock", "/run/x.sock"],
  ["unix:/run/x.sock", "/run/x.sock"],
  ["/run/x.sock", "/run/x.sock"],
  ["  unix:///run/x.sock\n", "/run/x.sock"],
  ["unix:///run/with space.sock", "/run/with space.sock"],
])("%j is the socket %j", (text, path) => {
  expect(parseEndpoint(text)).toEqual({ ok: true, path });
});

test.each([
  "",
  "unix://",
  "run/x.sock",
  "tcp://127.0.0.1:1",
  "npipe:////./pipe/x",
  "http:///run/x.sock",
  "unix://run/x",
])("%j is invalid, and the error repeats it with an example", (text) => {
  const parsed = parseEndpoint(text);

  expect(parsed.ok).toBe(false);
  expect(parsed).toMatchObject({ message: expect.stringContaining(`"${text}"`) });
  expect(parsed).toMatchObject({ message: expect.stringContaining("unix:///run/containerd/containerd.sock") });
});
