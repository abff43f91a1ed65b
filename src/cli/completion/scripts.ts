/** Each script asks the executable for the words that fit: nothing to keep current when commands change. */
export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** The word in front of the words that a shell passes on; never shown in help. */
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
