import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerHttp2Stream } from "node:http2";
import { dirname } from "node:path";
import { field, framed, numberField, textOf, unframed } from "./messages.ts";

/**
 * A CSI driver with the real protocol: Identity, Node and Controller services on its own socket, and the registration
 * service in kubelet's plugins_registry. Started as `node driver.ts <driver> <node> <socket> <registration socket>
 * [mount]`. Its volumes are directories next to the socket. Publishing one writes a file into it; with `mount` it is
 * bind mounted, which needs a driver in the node's mount namespace.
 */
const [driver = "", node = "", socket = "", registration = "", publishing = "write"] = process.argv.slice(2);
const home = dirname(socket);
/** The storage refuses to attach anything while this file exists, with its content as error. */
const refusal = `${home}/refuse`;
/** One line for each call that attaches or detaches. */
const calls = `${home}/calls`;

type Handler = (request: Buffer) => Buffer;

const NOTHING = Buffer.alloc(0);
const CONTROLLER_SERVICE = 1;
const PUBLISH_UNPUBLISH_VOLUME = 2;

function publish(volume: string, target: string): void {
  mkdirSync(target, { recursive: true });
  if (publishing !== "mount") {
    writeFileSync(`${target}/volume`, volume);
    return;
  }
  const storage = `${home}/volumes/${volume}`;
  mkdirSync(storage, { recursive: true });
  execFileSync("mount", ["--bind", storage, target]);
}

function unpublish(target: string): void {
  if (publishing === "mount" && isMounted(target)) execFileSync("umount", [target]);
  rmSync(target, { recursive: true, force: true });
}

function isMounted(target: string): boolean {
  return readFileSync("/proc/self/mountinfo", "utf8").includes(` ${target} `);
}

const csi: Readonly<Record<string, Handler>> = {
  "/csi.v1.Identity/GetPluginInfo": () => Buffer.concat([field(1, driver), field(2, "1.0.0")]),
  "/csi.v1.Identity/GetPluginCapabilities": () => field(1, field(1, numberField(1, CONTROLLER_SERVICE))),
  "/csi.v1.Identity/Probe": () => NOTHING,
  "/csi.v1.Controller/ControllerGetCapabilities": () => field(1, field(1, numberField(1, PUBLISH_UNPUBLISH_VOLUME))),
  "/csi.v1.Controller/ControllerPublishVolume": (request) => {
    if (existsSync(refusal)) throw new Error(readFileSync(refusal, "utf8"));
    appendFileSync(calls, `attach ${textOf(request, 1)} ${textOf(request, 2)}\n`);
    return NOTHING;
  },
  "/csi.v1.Controller/ControllerUnpublishVolume": (request) => {
    appendFileSync(calls, `detach ${textOf(request, 1)} ${textOf(request, 2)}\n`);
    return NOTHING;
  },
  "/csi.v1.Node/NodeGetInfo": () => field(1, node),
  "/csi.v1.Node/NodeGetCapabilities": () => NOTHING,
  "/csi.v1.Node/NodePublishVolume": (request) => {
    publish(textOf(request, 1), textOf(request, 4));
    return NOTHING;
  },
  "/csi.v1.Node/NodeUnpublishVolume": (request) => {
    unpublish(textOf(request, 2));
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

const OK = "0";
const UNIMPLEMENTED = "12";
const INTERNAL = "13";

async function answer(stream: ServerHttp2Stream, handler: Handler | undefined): Promise<void> {
  stream.on("error", () => undefined);
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  const { status, message, body } = resultOf(handler, unframed(Buffer.concat(parts)));
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () =>
    stream.sendTrailers({ "grpc-status": status, "grpc-message": encodeURIComponent(message) }),
  );
  if (body === undefined) stream.end();
  else stream.end(framed(body));
}

function resultOf(handler: Handler | undefined, request: Buffer) {
  if (handler === undefined) return { status: UNIMPLEMENTED, message: "no such method" };
  try {
    return { status: OK, message: "", body: handler(request) };
  } catch (error) {
    return { status: INTERNAL, message: (error as Error).message };
  }
}

await serve(socket, csi);
await serve(registration, registrar);
