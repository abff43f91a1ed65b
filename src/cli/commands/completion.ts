import { ExitCode } from "../io.ts";
import { defineCommand } from "./index.ts";

/** Each script gets its words from the executable, so that it never has to be updated. */
export const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

/** The hidden command for completion; never shown in help. */
export const COMPLETE = "__complete";

export const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: `# bash completion for unghost
_unghost() {
  # Not compgen -W, which expands what it is given.
  mapfile -t COMPREPLY < <(unghost ${COMPLETE} "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _unghost unghost
`,
  zsh: `#compdef unghost
# zsh completion for unghost
_unghost() {
  local -a candidates
  candidates=(\${(f)"$(unghost ${COMPLETE} "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  compadd -a candidates || _files
}
if [ "$funcstack[1]" = "_unghost" ]; then _unghost "$@"; else compdef _unghost unghost; fi
`,
  fish: `# fish completion for unghost
complete -c unghost -f -a '(unghost ${COMPLETE} (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
};

export const completionCommand = defineCommand({
  flags: {},
  positional: { kind: "tuple", parameters: [{ parse: shellNamed, brief: SHELLS.join(", "), placeholder: "SHELL" }] },
  run: (_flags, io, shell) => {
    io.stdout(SCRIPTS[shell]);
    return ExitCode.ok;
  },
});

function shellNamed(text: string): Shell {
  const shell = SHELLS.find((one) => one === text);
  if (shell === undefined) throw new Error(`expected one of ${SHELLS.join(", ")}`);
  return shell;
}
