type Env = Readonly<Record<string, string | undefined>>;

/** What comes before a command of unghost where the reader is. The agent's image has no shell: readers come through kubectl. */
export function commandPlace({ POD_NAME: pod, POD_NAMESPACE: namespace }: Env): readonly string[] {
  return pod && namespace ? ["kubectl", "--namespace", namespace, "exec", "-it", pod, "--"] : [];
}
