/** Exhausts a port in one way until it is ended. Arguments: MODE, HOST, PORT. A process of its own, because it is busy. */
import { connect, type Socket } from "node:net";

const [mode = "", host = "", port = ""] = process.argv.slice(2);
const JUNK_BYTES = 64 * 1024;
const AGAIN_MS = 1;

/** Holds this many connections; each that is ended is opened again. */
function hold(count: number, onOpen: (socket: Socket) => void): void {
  for (let index = 0; index < count; index += 1) open(onOpen);
}

function open(onOpen: (socket: Socket) => void): void {
  const socket = connect(Number(port), host, () => onOpen(socket));
  socket.on("error", () => undefined);
  socket.once("close", () => setTimeout(() => open(onOpen), AGAIN_MS));
}

const get = (path: string, more = ""): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`;

/** As fast as it is taken. */
function pour(socket: Socket, junk: string): void {
  const chunk = junk.repeat(Math.ceil(JUNK_BYTES / junk.length));
  const more = (): void => {
    let takesMore = true;
    while (takesMore && !socket.destroyed) takesMore = socket.write(chunk);
  };
  socket.on("drain", more);
  more();
}

function drip(socket: Socket, piece: () => unknown): void {
  const timer = setInterval(piece, 200);
  socket.once("close", () => clearInterval(timer));
}

/** Sends this head, then a little now and then. */
function slowly(socket: Socket, head: string, piece: string): void {
  socket.resume();
  socket.write(head);
  drip(socket, () => socket.write(piece));
}

const MODES: Readonly<Record<string, () => void>> = {
  pipelining: () =>
    hold(200, (socket) => {
      socket.pause();
      pour(socket, get("/metrics") + get("/") + get("/api/state"));
    }),
  reconnecting: () =>
    hold(200, (socket) => {
      socket.resume();
      socket.write(get("/metrics"));
    }),
  "slow headers": () => hold(300, (socket) => slowly(socket, "GET / HTTP/1.1\r\nHost: localhost\r\n", "a: b\r\n")),
  "slow bodies": () => hold(300, (socket) => slowly(socket, get("/metrics", "Content-Length: 1000000\r\n"), "x")),
  "endless bodies": () =>
    hold(100, (socket) => {
      socket.resume();
      socket.write(get("/metrics", "Transfer-Encoding: chunked\r\n"));
      pour(socket, "1\r\nx\r\n");
    }),
  "huge headers": () =>
    hold(100, (socket) => {
      socket.resume();
      socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n");
      pour(socket, "a: b\r\n");
    }),
  "half-open connections": () => hold(1000, (socket) => socket.resume()),
  "slow readers": () =>
    hold(300, (socket) => {
      socket.pause();
      socket.write(get(["/metrics", "/", "/api/state"][Math.floor(Math.random() * 3)] ?? "/"));
      drip(socket, () => socket.read(100));
    }),
  "event streams": () =>
    hold(200, (socket) => {
      socket.pause();
      socket.write(get("/api/events"));
    }),
};

MODES[mode]?.();
