import { describe, expect, test } from "vitest";
import { answersIn } from "../../src/diagnose/explain/lines.ts";

const ID = "7c1f0e5ab2d94836f1a0c7be52d86e4913fa07cd2b6e8150947bd3f6ac8e210d";

describe("nothing is answered", () => {
  test.each([
    [
      "docker",
      "docker: Error response from daemon: failed to create shim task: OCI runtime create failed: runc create failed",
    ],
    [
      "docker's daemon",
      `dockerd[811]: level=error msg="failed to delete failed start container" container=${ID} error="cannot delete running task ${ID}"`,
    ],
    [
      "docker's containerd",
      `ERRO[0001] Failed to restore container ${ID} with containerd: error creating fifo /var/run/docker/containerd/${ID}/init-stdout`,
    ],
    ["podman", `ERRO[0000] Unable to clean up network for container ${ID}: netavark: remove aardvark entries: failed`],
    ["nerdctl", 'nerdctl: FATA[0001] failed to create CNI network "web": subnet overlaps'],
    ["a desktop's own sandboxes", "sbx daemon: npipe: failed to load shim; reconnecting to running sandboxes"],
    [
      "an operator's namespace",
      'ip netns del blue: Cannot remove namespace file "/var/run/netns/blue": Device or resource busy',
    ],
  ])("to %s without a pod", (_, line) => {
    expect(answersIn(line)).toEqual([]);
  });

  test.each([
    ["code", 'if err != nil {\n\treturn nil, fmt.Errorf("failed to reserve sandbox name %q: %w", name, err)\n}'],
    ["code that logs", 'log.G(ctx).WithError(err).Errorf("Failed to destroy network for sandbox %q", id)'],
    [
      "an alert rule",
      "- alert: StopFails\n  expr: rate(kubelet_runtime_operations_errors_total[5m]) > 0\n  annotations:\n    summary: StopPodSandbox from runtime service failed on a node",
    ],
    ["a notification's text", "summary: StopPodSandbox from runtime service failed on {{ $labels.instance }}"],
  ])("to %s that contains the words", (_, text) => {
    expect(answersIn(text)).toEqual([]);
  });

  test.each([
    'W1115 03:22:07.1 811 watcher.go:93] Error while processing event ("/sys/fs/cgroup/kubepods/pod9f": 0x40000100 == IN_CREATE|IN_ISDIR): inotify_add_watch /sys/fs/cgroup/kubepods/pod9f: no such file or directory',
    "systemd[1]: Failed to reset devices.list on /kubepods/pod9f: Operation not permitted",
    '"eviction manager: failed to check if we have separate container filesystem. Ignoring." err="no imagefs label for configured runtime"',
    "W1115 03:22:07.1 811 server.go:1] --pod-infra-container-image will not be pruned by the image garbage collector: error in the sandbox image's flag",
  ])("to what every node logs: %s", (line) => {
    expect(answersIn(line)).toEqual([]);
  });
});

test("what a containerd of 1.6 logs at each end of a container is ordinary", () => {
  const [answer] = answersIn(
    'level=warning msg="cleanup warnings time=\\"2026-11-15T03:22:07Z\\" level=warning msg=\\"failed to remove runc container\\" error=\\"runc did not terminate successfully: exit status 255\\""',
  );

  expect(answer).toMatchObject({ matches: [], topic: { isOrdinary: true } });
  expect(answer?.failure).toBeUndefined();
});

test("an error about a sandbox is no matter of the pod's own volumes or command", () => {
  const [answer] = answersIn(
    `RunPodSandbox from runtime service failed: rpc error: code = Unknown desc = failed to start sandbox "${ID}": failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: error mounting "mqueue" to rootfs at "/dev/mqueue": mount mqueue: operation not permitted`,
  );

  expect(answer?.topic).toBeUndefined();
  expect(answer?.failure).toMatchObject({ operation: "create-sandbox" });
});

test("the runtime's own answer to a creation is no creation that hangs", () => {
  const [answer] = answersIn(
    `Failed to create pod sandbox: rpc error: code = DeadlineExceeded desc = failed to start sandbox "${ID}": failed to create containerd task: failed to create shim task: CreateContainerRequest timed out: context deadline exceeded`,
  );

  expect(answer?.matches).toEqual([]);
  expect(answer?.failure?.cause).toBe("CreateContainerRequest timed out: context deadline exceeded");
});
