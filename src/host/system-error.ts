/** ENOENT, EEXIST, EXDEV …, or undefined if the error did not come from the operating system. */
export function errorCode(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" ? thrown.code : undefined;
}

/** The code, or the class name of any other value. */
export function errorLabel(thrown: unknown): string {
  return errorCode(thrown) ?? (thrown instanceof Error ? thrown.name : "unknown error");
}

const PLAIN_WORDS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EROFS: "the file system is read-only",
  EACCES: "permission denied",
  EPERM: "the operation is not permitted",
  ENOENT: "there is no such file or directory",
  ENOTDIR: "a part of the path is not a directory",
  ELOOP: "a part of the path is a symbolic link",
  EIO: "the disk reports an input/output error",
  EMFILE: "too many files are open",
};

export function describeError(thrown: unknown): string {
  const code = errorCode(thrown);
  if (code !== undefined) return `${PLAIN_WORDS[code] ?? "the system refused"} (${code})`;
  return thrown instanceof Error ? thrown.message : String(thrown);
}
