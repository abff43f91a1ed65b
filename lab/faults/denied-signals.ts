import type { LabNode } from "../node.ts";
import { RUNC_WRAPPER } from "../runc.ts";
import type { Injected } from "./injected.ts";

const KERNEL_LOG = "/var/lab/kmsg";
const DENIED =
  'audit: type=1400 audit(1.1:12): apparmor="DENIED" operation="signal" class="signal" profile="cri-containerd.apparmor.d" pid=4312 comm="runc" requested_mask="receive" denied_mask="receive" signal=kill peer="runc"';

/**
 * AppArmor refuses runc's signals. The lab's machines have no AppArmor: runc's "kill" answers as it does then, and the
 * node's kernel log has the kernel's own line. For nodes whose runtime uses the wrapper of runc (cgroup v2).
 */
export async function deniedSignals(node: LabNode): Promise<Injected> {
  const wrapper = await node.check(["cat", RUNC_WRAPPER]);
  const refuses = 'case " $* " in *" kill "*) echo "unable to signal init: permission denied" >&2; exit 1 ;; esac';
  await node.writeFile(RUNC_WRAPPER, wrapper.replace("\n", `\n${refuses}\n`), 0o755);
  await node.writeFile(KERNEL_LOG, `5,1,1000,-;${DENIED}\n`);
  await node.check(["mount", "--bind", KERNEL_LOG, "/dev/kmsg"]);
  return { fault: "denied-signals", did: "refuses every signal that runc sends" };
}
