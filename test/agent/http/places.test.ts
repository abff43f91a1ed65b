import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { connectionPlaces, openPlaces } from "../../../src/agent/http/places.ts";

const LIMITS = { total: 4, perClient: 2, most: 6 };
const LATER_MS = 60_000;

interface Fake {
  readonly socket: Socket;
  readonly isOpen: () => boolean;
}

function connection(remoteAddress = ""): Fake {
  let isOpen = true;
  const socket = Object.assign(new EventEmitter(), {
    remoteAddress,
    destroy: () => {
      isOpen = false;
      socket.emit("close");
    },
  });
  return { socket: socket as unknown as Socket, isOpen: () => isOpen };
}

function open(all: readonly Fake[]): readonly boolean[] {
  return all.map(({ isOpen }) => isOpen());
}

test("a client with too many connections loses its oldest, once that had its time", () => {
  const { admit } = openPlaces(LIMITS);
  const [first, second, third, other] = [connection(), connection(), connection(), connection()];

  admit(other.socket, "b", 0);
  admit(first.socket, "a", 0);
  admit(second.socket, "a", 0);
  admit(third.socket, "a", 0);
  const atOnce = open([first, second, third, other]);
  admit(connection().socket, "a", LATER_MS);

  expect(atOnce).toEqual([true, true, true, true]);
  expect(open([first, second, third, other])).toEqual([false, true, true, true]);
});

test("when all places are taken, the client with the most connections loses one", () => {
  const { admit } = openPlaces({ ...LIMITS, perClient: 4 });
  const [lone, many] = [connection(), [connection(), connection(), connection()]];

  admit(lone.socket, "a", 0);
  for (const { socket } of many) admit(socket, "b", 1);
  const last = connection();
  admit(last.socket, "c", LATER_MS);

  expect(open([lone, ...many, last])).toEqual([true, false, true, true, true]);
});

test("no more than the hard limit, however fast they come", () => {
  const { admit } = openPlaces(LIMITS);
  const all = Array.from({ length: 100 }, () => connection());

  for (const { socket } of all) admit(socket, "a", 0);

  expect(all.filter(({ isOpen }) => isOpen())).toHaveLength(LIMITS.most);
  expect(all.at(-1)?.isOpen()).toBe(true);
});

test("connections that ended take no place", () => {
  const { admit } = openPlaces(LIMITS);
  const all = Array.from({ length: 100 }, () => connection());

  for (const { socket } of all.slice(0, -1)) {
    admit(socket, "a", 0);
    socket.destroy();
  }
  admit(all.at(-1)?.socket as Socket, "a", LATER_MS);

  expect(all.at(-1)?.isOpen()).toBe(true);
});

test.each([
  ["the network", "10.0.0.7", "127.0.0.1"],
  ["the network, in IPv6 form", "::ffff:10.0.0.7", "::ffff:127.0.0.1"],
  ["this machine", "127.0.0.2", "10.0.0.7"],
])("connections of %s take no places of the other", (_, crowd, lone) => {
  const { admit } = connectionPlaces();
  const first = connection(lone);
  admit(first.socket);

  for (let index = 0; index < 5000; index += 1) admit(connection(crowd).socket);

  expect(first.isOpen()).toBe(true);
});

test("all addresses of an IPv6 network are one client", () => {
  const { admit } = connectionPlaces();
  const lone = connection("2001:db8:0:2::1");
  admit(lone.socket);

  for (let index = 1; index < 5000; index += 1) admit(connection(`2001:db8:0:1::${index.toString(16)}`).socket);

  expect(lone.isOpen()).toBe(true);
});
