import { mkdirSync, symlinkSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hostPath, resolveOnHost } from "../../src/host/paths.ts";
import { tempDir } from "../node/temp-dir.ts";

describe("hostPath", () => {
  test.each([
    ["/", "/var/lib/cni", "/var/lib/cni"],
    ["/", "/", "/"],
    ["/host", "/", "/host"],
    ["/host", "/var/lib/cni", "/host/var/lib/cni"],
    ["/host/", "//var//lib/cni/", "/host/var/lib/cni"],
    ["//host//", "/var/lib/../../../../etc/shadow", "/host/etc/shadow"],
    ["/host", "../../etc", "/host/etc"],
    ["", "/run", "/run"],
  ])("maps %j and %j to %j", (root, path, expected) => {
    expect(hostPath(root, path)).toBe(expected);
  });

  test("never leaves the root, whatever the path", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("..", ".", "", "a", "b c", "\n", "/")), (parts) => {
        const path = hostPath("/host", parts.join("/"));
        expect(path).toMatch(/^\/host(?:\/|$)/);
        expect(path.split("/")).not.toContain("..");
      }),
    );
  });
});

describe("resolveOnHost", () => {
  test("resolves absolute links inside the root, not in our own file system", () => {
    const root = tempDir();
    mkdirSync(`${root}/run/netns`, { recursive: true });
    mkdirSync(`${root}/var`);
    symlinkSync("/run", `${root}/var/run`);

    expect(resolveOnHost(root, "/var/run/netns", "keep")).toBe(`${root}/run/netns`);
  });

  test("keeps a last link for the caller to refuse, or follows it, including relative ones and chains", () => {
    const root = tempDir();
    mkdirSync(`${root}/snap/conf`, { recursive: true });
    mkdirSync(`${root}/etc/cni`, { recursive: true });
    symlinkSync("../../alias", `${root}/etc/cni/net.d`);
    symlinkSync("/snap/conf", `${root}/alias`);

    expect(resolveOnHost(root, "/etc/cni/net.d", "keep")).toBe(`${root}/etc/cni/net.d`);
    expect(resolveOnHost(root, "/etc/cni/net.d", "follow")).toBe(`${root}/snap/conf`);
  });

  test("keeps a link with .. inside the root, and ends on a loop", () => {
    const root = tempDir();
    symlinkSync("../../../../../../etc", `${root}/climb`);
    symlinkSync("loop", `${root}/loop`);

    expect(resolveOnHost(root, "/climb/passwd", "follow")).toBe(`${root}/etc/passwd`);
    expect(resolveOnHost(root, "/loop/x", "follow")).toContain(root);
  });

  test("returns missing paths unchanged", () => {
    const root = tempDir();

    expect(resolveOnHost(root, "/no/such/dir", "follow")).toBe(`${root}/no/such/dir`);
  });
});
