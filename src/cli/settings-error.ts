/** A setting that makes no sense: the command ends with 64 and this sentence. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}
