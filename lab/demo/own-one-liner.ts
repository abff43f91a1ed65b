import { openCri } from "../../src/runtime/cri.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { PodSandboxState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { CALL, type Ran } from "./stage.ts";

/** The calls of the one-liner: list NotReady sandboxes, then stop and remove each. `|| true` makes the code 0. */
export async function ownOneLiner(socket: string): Promise<Ran> {
  const cri = openCri(socket);
  try {
    const dead = await cri.listPodSandbox({ state: { state: PodSandboxState.SANDBOX_NOTREADY } }, CALL);
    for (const { id } of dead) {
      await cri.stopPodSandbox(id, CALL);
      await cri.removePodSandbox(id, CALL);
    }
    return { code: 0, output: dead.map(({ id }) => `Removed sandbox ${id}`).join("\n") };
  } catch (error) {
    if (!(error instanceof RuntimeError)) throw error;
    return { code: 0, output: error.message };
  } finally {
    cri.close();
  }
}
