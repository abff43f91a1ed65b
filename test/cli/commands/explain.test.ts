import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { classes } from "../../../src/classes/index.ts";
import { type ExplainOptions, runExplain } from "../../../src/cli/commands/explain.ts";

const dir = mkdtempSync(join(tmpdir(), "unghost-explain-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const corrupt =
  'failed to get network "cbr0" cached result: decoding version from network config: unexpected end of JSON input';

interface World {
  readonly stdin?: string;
  readonly path?: string;
  readonly columns?: number;
}

async function explain(options: Partial<ExplainOptions>, world: World = {}) {
  let stdout = "";
  let stderr = "";
  const code = await runExplain(
    { texts: [], journal: false, list: false, output: "table", verbose: false, colour: false, ...options },
    {
      stdout: (text) => {
        stdout += text;
      },
      stderr: (text) => {
        stderr += text;
      },
      env: { PATH: world.path ?? process.env["PATH"] },
      stdinIsTerminal: world.stdin === undefined,
      columns: world.columns ?? 100,
      stdin: async function* () {
        yield new TextEncoder().encode(world.stdin ?? "");
      },
    },
  );
  return { code, stdout, stderr };
}

describe("explain", () => {
  test("says what it is, what to do, what not to do and how sure that is, in that order", async () => {
    const { code, stdout } = await explain({ texts: [`pod=shop/web-0 ${corrupt}`] });

    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^Corrupt CNI result cache \(B1 libcni-result-cache-corrupt\)\nWhat: [^]*\nWho: pod shop\/web-0\nDo this: [^]*\nCareful: [^]*\nHow sure: Sure \(95 %\)[^]*\nMore: /,
    );
    expect(stdout).not.toContain("Why it happens");
  });

  test("explains cause and remedy in full with -v", async () => {
    const { stdout } = await explain({ texts: [corrupt], verbose: true });

    for (const part of ["Why it happens", "What unghost does automatically", "Manual steps", "Careful:"]) {
      expect(stdout).toContain(part);
    }
  });

  test("calls a guess a guess before anything else", async () => {
    const { stdout } = await explain({ texts: ["failed to reserve sandbox name web_shop_1_0"] }, { columns: 400 });

    expect(stdout).toMatch(/^Probably \(70 %\): Sandbox name held by a creation that never ended/);
    expect(stdout).toContain("Otherwise: A3 clock-step-sandbox-attempt-reuse");
  });

  test("quotes an unknown cause of a failing operation, and claims no class", async () => {
    const line = `"StopPodSandbox from runtime service failed" err="rpc error: code = Unknown desc = failed to destroy network for sandbox \\"${"ab".repeat(32)}\\": plugin type=\\"kube-ovn\\" name=\\"kube-ovn\\" failed (delete): RPC failed; the moon is full" podSandboxID="${"ab".repeat(32)}"`;

    const { code, stdout, stderr } = await explain({ texts: [line] }, { columns: 400 });
    const { matches, failures } = JSON.parse((await explain({ texts: [line], output: "json" })).stdout);

    expect([code, stderr]).toEqual([1, ""]);
    expect(stdout).toContain(
      "Removal of this sandbox fails; the network plugin kube-ovn answers: «RPC failed; the moon is full».\nunghost does not know this cause.",
    );
    expect(stdout).toContain('Search for: kube-ovn "RPC failed the moon is full"');
    expect(matches).toEqual([]);
    expect(failures).toEqual([
      expect.objectContaining({ operation: "stop-sandbox", plugin: "kube-ovn", cause: "RPC failed; the moon is full" }),
    ]);
  });

  test("says that a line is cut off, and how to get all of it", async () => {
    const { code, stdout } = await explain({
      texts: ['log.go:32] "StopPodSandbox from runtime service failed" err="rpc error: code = Unkno>'],
    });

    expect(code).toBe(1);
    expect(stdout).toContain("Removal of this sandbox fails; the text is cut off before the cause.");
    expect(stdout).toContain("journalctl --no-pager -l");
  });

  test("puts the id and the pod of a line into the commands", async () => {
    const id = "ab".repeat(32);
    const line = `Error deleting shop_web-0/${id} from network n: ${corrupt}`;

    const { stdout } = await explain({ texts: [line], verbose: true }, { columns: 400 });
    const several = await explain({ texts: [line, line.replaceAll("ab", "cd")], verbose: true }, { columns: 400 });

    expect(stdout).toContain(`crictl stopp ${id} && crictl rmp ${id}`);
    expect(stdout).toContain(`unghost scan ${id.slice(0, 13)}`);
    expect(stdout).not.toMatch(/(?:stopp|rmp) <id>/);
    expect(several.stdout).toContain("crictl stopp <id>");
  });

  test.each([60, 80, 200])("fits into %i columns", async (columns) => {
    const line = `Error deleting shop_web-0/${"ab".repeat(32)} from network n: ${corrupt}`;

    await expect((await explain({ texts: [line] }, { columns })).stdout).toMatchFileSnapshot(
      `../golden/explain-line.${columns}.txt`,
    );
  });

  test.each([
    ["an empty input", ""],
    ["blank lines", "\n  \n\t\n"],
  ])("says of %s that there is nothing to explain", async (_, stdin) => {
    const { code, stdout, stderr } = await explain({}, { stdin });

    expect([code, stdout, stderr]).toEqual([1, "", "Nothing to explain: the input is empty.\n"]);
  });

  test("does not say what a line contains that it has not read to its end", async () => {
    const { code, stderr } = await explain({}, { stdin: `${"x ".repeat(600_000)}${corrupt}` });

    expect(code).toBe(1);
    expect(stderr).toContain("Only the first 1 MiB of each line was read");
    expect(stderr).toContain("Not recognised: what was read of this text contains no failing");
  });

  test("names a directory as what it is", async () => {
    const { code, stderr } = await explain({ texts: [dir] });

    expect([code, stderr]).toEqual([64, expect.stringContaining(`cannot read ${dir}: it is a directory.`)]);
  });

  test.each<[string, (text: string) => Uint8Array]>([
    ["compressed by logrotate", (text) => gzipSync(text)],
    ["in UTF-16, as PowerShell writes it", (text) => Buffer.from(`\uFEFF${text}\r\n`, "utf16le")],
    ["in UTF-16 of the other byte order", (text) => Buffer.from(`\uFEFF${text}\r\n`, "utf16le").swap16()],
    ["with a byte order mark", (text) => Buffer.from(`\uFEFF${text}`)],
  ])("reads a file %s", async (_, encode) => {
    const path = join(dir, "encoded.log");
    writeFileSync(path, encode(`pod=shop/web-0 ${corrupt}`));

    const { code, stdout, stderr } = await explain({ texts: [path] });

    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("Who: pod shop/web-0");
  });

  test("a compressed file that ends too early is reported, with what it contains", async () => {
    const path = join(dir, "cut.log.gz");
    writeFileSync(path, gzipSync(`${corrupt}\n${"x".repeat(10_000)}`).subarray(0, -12));

    const { stderr } = await explain({ texts: [path] });

    expect(stderr).toContain(`Could not read ${path}: unexpected end of file`);
    expect(stderr).not.toContain("the input is empty");
  });

  test("reads a message that journalctl writes as bytes, and says when it left one out", async () => {
    const MESSAGE = [...Buffer.from(`\u001b[31mERRO\u001b[0m ${corrupt}`)];

    const coloured = await explain({}, { stdin: JSON.stringify({ PRIORITY: "3", MESSAGE }) });
    const pretty = await explain(
      {},
      { stdin: JSON.stringify({ PRIORITY: "3", MESSAGE }, null, 8).replace('MESSAGE":', 'MESSAGE" :') },
    );
    const without = await explain({}, { stdin: JSON.stringify({ PRIORITY: "3", MESSAGE: null }) });

    expect([coloured.code, pretty.code]).toEqual([0, 0]);
    expect(without.code).toBe(1);
    expect(without.stderr).toContain("journalctl left out messages longer than 4 KiB: add --all");
  });

  test.each(["containerd.log", "logs/kubelet.log.1", "./x", "/var/log/nothing.txt"])(
    "reports that the file %s does not exist",
    async (name) => {
      const { code, stderr } = await explain({ texts: [name] });

      expect([code, stderr]).toEqual([64, expect.stringContaining(`cannot read ${name}: it does not exist`)]);
    },
  );

  test("gives programs only the matches", async () => {
    const { code, stdout } = await explain({
      texts: [`Error deleting shop_web-0/${"ab".repeat(32)} from network n: ${corrupt}`],
      output: "json",
    });

    expect(code).toBe(0);
    const { matches, ...rest } = JSON.parse(stdout);
    expect(rest).toEqual({});
    expect(matches).toEqual([
      {
        class: "libcni-result-cache-corrupt",
        confidence: 0.95,
        sandboxId: "ab".repeat(32),
        pod: { namespace: "shop", name: "web-0" },
        line: expect.stringContaining("Error deleting"),
      },
    ]);
  });

  test("says what a trouble is that has nothing to do with sandboxes, and where to go", async () => {
    const { code, stdout, stderr } = await explain({ texts: ["Error: ImagePullBackOff"] });
    const { matches, topics } = JSON.parse(
      (await explain({ texts: ["Error: ImagePullBackOff"], output: "json" })).stdout,
    );

    expect([code, stderr]).toEqual([1, ""]);
    expect(stdout).toMatch(/^An image cannot be pulled. This is no ghost. Check /);
    expect(matches).toEqual([]);
    expect(topics).toEqual([expect.objectContaining({ id: "image-pull", count: 1 })]);
  });

  test("reports an ordinary line as not recognised, without matches", async () => {
    const { code, stdout, stderr } = await explain({ texts: ["Started Session 4 of User root."] });

    expect(code).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toContain("Not recognised");
    expect(JSON.parse((await explain({ texts: ["x"], output: "json" })).stdout)).toEqual({ matches: [] });
  });

  test("explains “Pod sandbox changed” alone as normal, without a match", async () => {
    const { code, stderr } = await explain({ texts: ["Pod sandbox changed, it will be killed and re-created."] });

    expect(code).toBe(1);
    expect(stderr).toContain("sandbox-changed-alone");
  });

  test("treats arguments without quotes as one line", async () => {
    const { code, stdout } = await explain({ texts: "failed to reserve sandbox name web_shop_1_0".split(" ") });

    expect(code).toBe(0);
    expect(stdout).toContain("A1 sandbox-name-held-by-inflight-run");
  });

  test.each([
    ["longer than a file name", `${"x".repeat(5000)} ${corrupt}`],
    ["with a path in it", `/var/lib/${"x".repeat(300)}: ${corrupt}`],
    ["with a NUL", `\0${corrupt}`],
  ])("treats a line %s as a line", async (_, line) => {
    expect((await explain({ texts: [line] })).code).toBe(0);
  });

  test("reads files, and stdin for - or when nothing is given", async () => {
    const file = join(dir, "kubelet.log");
    writeFileSync(file, `nothing\n${corrupt}\r\nnothing\n`);

    expect((await explain({ texts: [file] })).code).toBe(0);
    expect((await explain({ texts: ["-"] }, { stdin: corrupt })).code).toBe(0);
    expect((await explain({}, { stdin: `${corrupt}\n` })).code).toBe(0);
    expect((await explain({}, { stdin: "fine\n" })).code).toBe(1);
  });

  test("prints its usage without any input", async () => {
    const { code, stderr } = await explain({});

    expect(code).toBe(64);
    expect(stderr).toContain("--journal");
  });

  test("a missing file is a usage error, not an error line", async () => {
    const { code, stderr } = await explain({ texts: ["/nowhere/containerd.log"] });

    expect([code, stderr]).toEqual([
      64,
      expect.stringContaining("cannot read /nowhere/containerd.log: it does not exist."),
    ]);
  });

  test("a class id prints its manual page, --list all classes", async () => {
    const page = await explain({ texts: ["multus-lossy-conflist"] });
    const list = await explain({ list: true });

    expect(page.code).toBe(0);
    expect(page.stdout).toContain("How it reads in logs");
    const [heading, ...rows] = list.stdout.trim().split("\n");
    expect(heading).toMatch(/^CODE +CLASS +HEAL +WHAT IT IS$/);
    expect(rows).toHaveLength(classes.length);
    for (const { title } of classes) expect(list.stdout).toContain(title);
  });

  test("accepts class codes, several at once, and names a mistyped one", async () => {
    const two = await explain({ texts: ["b1", "retained-notready"] });
    const wrong = await explain({ texts: ["multus-cache-corupt"] });

    expect(two.stdout).toContain("B1 libcni-result-cache-corrupt");
    expect(two.stdout).toContain("N1 retained-notready");
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain("multus-cache-corupt");
  });

  test("wraps text to the terminal, and uses colours only on request", async () => {
    const narrow = await explain({ texts: [corrupt] }, { columns: 40 });
    const plain = narrow.stdout.split("\n").filter((line) => line.length > 40 && line.trim().includes(" "));

    expect(plain).toEqual([]);
    expect(narrow.stdout).not.toContain("\u001b");
    expect((await explain({ texts: [corrupt], colour: true })).stdout).toContain("\u001b[1m");
  });

  test("counts a flood, and shows a part of it", async () => {
    const { code, stdout, stderr } = await explain({ output: "json" }, { stdin: `${corrupt}\n\n`.repeat(6000) });

    expect(code).toBe(0);
    expect(JSON.parse(stdout).matches).toHaveLength(5000);
    expect(stderr).toContain("6000");
  });
});

describe("explain --journal", () => {
  test("reads the units of every distribution", async () => {
    const bin = mkdtempSync(join(dir, "bin-"));
    const fake = join(bin, "journalctl");
    writeFileSync(
      fake,
      `#!/bin/sh\necho "Nov 15 03:22:07 n k3s[8]: $*"\necho 'Nov 15 03:22:07 n k3s[8]: ${corrupt}'\n`,
    );
    chmodSync(fake, 0o755);

    const { code, stdout } = await explain({ journal: true, output: "json" }, { path: `${bin}:/bin:/usr/bin` });

    expect(code).toBe(0);
    expect(JSON.parse(stdout).matches).toHaveLength(1);
  });

  test("reports that there is no journal", async () => {
    const { code, stderr } = await explain({ journal: true }, { path: join(dir, "nowhere") });

    expect(code).toBe(1);
    expect(stderr).toContain("journalctl is not on this machine");
  });

  test("reports that journald has no lines of kubelet or a runtime", async () => {
    const bin = mkdtempSync(join(dir, "bin-"));
    writeFileSync(join(bin, "journalctl"), "#!/bin/sh\n", { mode: 0o755 });

    const { code, stderr } = await explain({ journal: true }, { path: `${bin}:/bin:/usr/bin` });

    expect(code).toBe(1);
    expect(stderr).toBe(
      "journald has no lines of kubelet or a container runtime on this node. Give their log as a file, or on stdin with -.\n",
    );
  });

  test("prints the error output of journalctl", async () => {
    const bin = mkdtempSync(join(dir, "bin-"));
    writeFileSync(join(bin, "journalctl"), "#!/bin/sh\necho 'no permission' >&2\nexit 1\n");
    chmodSync(join(bin, "journalctl"), 0o755);

    const { stderr } = await explain({ journal: true }, { path: `${bin}:/bin:/usr/bin` });

    expect(stderr).toContain("no permission");
  });
});
