import { existsSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { CNI_BIN_DIR } from "./cni-config.ts";
import type { LabNode } from "./node.ts";
import { until } from "./poll.ts";

/**
 * A network add-on like kube-ovn: a CNI plugin that calls its own daemon over a unix socket, and the daemon. After the
 * daemon's answer, the plugin executes the real bridge plugin.
 */
export const DELEGATE = "lab-ovn";
export const DELEGATE_SOCKET = "/run/openvswitch/kube-ovn-daemon.sock";

/** How the daemon handles a request: answer, accept and never answer, or answer after this many milliseconds. */
export type DelegateMood = "well" | "hang" | `slow ${number}`;

const MOOD_FILE = "/var/lib/lab-ovn/mood";
const REQUESTS_FILE = "/var/lib/lab-ovn/requests";
const PID_FILE = "/run/lab-ovn.pid";
const PROGRAM = "/opt/lab-ovn.cjs";
const START_MS = 60_000;

/**
 * Perl, because it starts within milliseconds and every Debian has it. One process from start to end, like a plugin in
 * Go: the last step executes the bridge.
 */
const PLUGIN = `#!/usr/bin/perl
use strict;
use IO::Socket::UNIX;
my $bridge = "${CNI_BIN_DIR}/bridge";
exec $bridge if $ENV{CNI_COMMAND} eq "VERSION";
my $conf = do { local $/; <STDIN> };
sub refuse { print '{"code":100,"msg":"' . $_[0] . '"}'; exit 1 }
refuse("Invalid Configuration; server_socket is required in cni.conf") unless $conf =~ /server_socket/;
if ($conf =~ /asks_daemon/) {
  my $daemon = IO::Socket::UNIX->new(Peer => "${DELEGATE_SOCKET}")
    or refuse("RPC failed; Post http://dummy/api/v1/" . lc($ENV{CNI_COMMAND}) . ": dial unix ${DELEGATE_SOCKET}: connect: " . lc("$!"));
  print $daemon "$ENV{CNI_COMMAND} $ENV{CNI_CONTAINERID}\\n";
  $daemon->flush;
  defined(<$daemon>) or refuse("RPC failed; request failed: EOF");
}
open(my $again, "+>", undef) or die;
print $again $conf;
seek($again, 0, 0);
open(STDIN, "<&", $again) or die;
exec $bridge;
`;

const DAEMON = `
const { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } = require("node:fs");
mkdirSync("/run/openvswitch", { recursive: true });
rmSync("${DELEGATE_SOCKET}", { force: true });
const mood = () => (existsSync("${MOOD_FILE}") ? readFileSync("${MOOD_FILE}", "utf8") : "well");
require("node:net").createServer((socket) => {
  socket.on("error", () => undefined);
  socket.on("data", (request) => {
    appendFileSync("${REQUESTS_FILE}", request);
    const [kind, ms] = mood().split(" ");
    if (kind !== "hang") setTimeout(() => socket.end("ok\\n"), Number(ms ?? 0));
  });
}).listen("${DELEGATE_SOCKET}", () => writeFileSync("${PID_FILE}", String(process.pid)));
`;

/** Installs the plugin into CNI's bin directory. It calls the daemon only if configured. */
export function installDelegate(node: LabNode): Promise<void> {
  return node.writeFile(`${CNI_BIN_DIR}/${DELEGATE}`, PLUGIN, 0o755);
}

/** Starts the daemon and waits until it listens. It ends with a power cut: start it again after each boot. */
export async function startDelegateDaemon(node: LabNode): Promise<void> {
  await node.writeFile(PROGRAM, DAEMON);
  await node.writeFile(REQUESTS_FILE, "");
  await rm(node.livePath(PID_FILE), { force: true });
  await node.check(["sh", "-c", `setsid ${process.execPath} ${PROGRAM} </dev/null >>/var/log/lab-ovn.log 2>&1 &`]);
  await until("the delegate's daemon listens", START_MS, () => existsSync(node.livePath(PID_FILE)) || undefined);
}

/** From the next request on. */
export function setDelegateMood(node: LabNode, mood: DelegateMood): Promise<void> {
  return node.writeFile(MOOD_FILE, mood);
}

/** The daemon's pid in the node's pid namespace. */
export function delegateDaemonPid(node: LabNode): number {
  return Number(readFileSync(node.livePath(PID_FILE), "utf8"));
}

/** Stops the daemon; the socket file stays, as after a crash, unless it is to be removed too. */
export async function stopDelegateDaemon(node: LabNode, socketFile: "stays" | "goes" = "stays"): Promise<void> {
  const pid = delegateDaemonPid(node);
  await node.kill(pid);
  await until("the delegate's daemon is gone", START_MS, () => !existsSync(node.livePath(`/proc/${pid}`)) || undefined);
  if (socketFile === "goes") await rm(node.livePath(DELEGATE_SOCKET), { force: true });
}

/** A new daemon: callers that waited for the old one get an end of file. */
export async function restartDelegateDaemon(node: LabNode): Promise<void> {
  await stopDelegateDaemon(node);
  await setDelegateMood(node, "well");
  await startDelegateDaemon(node);
}

/** `ADD <id>` or `DEL <id>` for each request since the daemon was started. */
export function delegateRequests(node: LabNode): readonly string[] {
  return readFileSync(node.path(REQUESTS_FILE), "utf8").split("\n").filter(Boolean);
}
