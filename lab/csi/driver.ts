import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerHttp2Stream } from "node:http2";
import { dirname } from "node:path";

/**
 * A CSI node plugin that speaks the real protocol with kubelet: Identity and Node services on its own socket, and the
 * registration service in kubelet's plugins_registry. Started in a pod as `node driver.ts <driver> <node> <socket> <registration socket>`.
 * Its volumes are plain directories: publishing one writes a file into it.
 */
const [driver = "", node = "", socket = "", registration = ""] = process.argv.slice(2);

type Handler = (request: Buffer) => Buffer;

function field(number: number, content: Buffer | string): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([Buffer.from([(number << 3) | 2]), varint(bytes.length), bytes]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 0x80) return Buffer.from([...bytes, rest]);
    bytes.push((rest & 0x7f) | 0x80);
  }
}

/** The text of one length-delimited field; messages of CSI carry their names and paths in such. */
function textOf(message: Buffer, wanted: number): string {
  let at = 0;
  const read = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = message[at++] ?? 0;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = read();
    if ((tag & 7) === 0) {
      read();
      continue;
    }
    const length = read();
    if (tag >> 3 === wanted) return message.toString("utf8", at, at + length);
    at += length;
  }
  return "";
}

const NOTHING = Buffer.alloc(0);

const csi: Readonly<Record<string, Handler>> = {
  "/csi.v1.Identity/GetPluginInfo": () => Buffer.concat([field(1, driver), field(2, "1.0.0")]),
  "/csi.v1.Identity/GetPluginCapabilities": () => NOTHING,
  "/csi.v1.Identity/Probe": () => NOTHING,
  "/csi.v1.Node/NodeGetInfo": () => field(1, node),
  "/csi.v1.Node/NodeGetCapabilities": () => NOTHING,
  "/csi.v1.Node/NodePublishVolume": (request) => {
    const target = textOf(request, 4);
    mkdirSync(target, { recursive: true });
    writeFileSync(`${target}/volume`, textOf(request, 1));
    return NOTHING;
  },
  "/csi.v1.Node/NodeUnpublishVolume": (request) => {
    rmSync(textOf(request, 2), { recursive: true, force: true });
    return NOTHING;
  },
};

const registrar: Readonly<Record<string, Handler>> = {
  "/pluginregistration.Registration/GetInfo": () =>
    Buffer.concat([field(1, "CSIPlugin"), field(2, driver), field(3, socket), field(4, "1.0.0")]),
  "/pluginregistration.Registration/NotifyRegistrationStatus": () => NOTHING,
};

function serve(path: string, handlers: Readonly<Record<string, Handler>>): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  rmSync(path, { force: true });
  const server = createServer();
  server.on("stream", (stream, headers) => void answer(stream, handlers[headers[":path"] ?? ""]));
  return new Promise((resolve) => server.listen(path, resolve));
}

const UNIMPLEMENTED = "12";

async function answer(stream: ServerHttp2Stream, handler: Handler | undefined): Promise<void> {
  stream.on("error", () => undefined);
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": handler === undefined ? UNIMPLEMENTED : "0" }));
  if (handler === undefined) {
    stream.end();
    return;
  }
  // Five bytes in front of each message: whether it is compressed, and its length.
  const body = handler(Buffer.concat(parts).subarray(5));
  const length = Buffer.alloc(5);
  length.writeUInt32BE(body.length, 1);
  stream.end(Buffer.concat([length, body]));
}

await serve(socket, csi);
await serve(registration, registrar);
