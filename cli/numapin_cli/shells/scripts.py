"""The completion scripts. Each asks `numapin completion candidates` for words.

The answer is that of cobra's `__complete`: a line `word<TAB>description` for each word, then `:`
and a number, which is a sum of `Directive`s. kubectl asks its plug-ins the same way.
Source: spf13/cobra, completions.go; kubectl, "Extend kubectl with plugins", completion.

Does no I/O.
"""

from enum import IntFlag
from typing import Final


class Directive(IntFlag):
    """What a shell does besides offering the words. Source: cobra, `ShellCompDirective`."""

    FILES = 0
    NO_SPACE = 2
    NO_FILES = 4


BASH: Final = r"""# Completion of numapin for bash:  source <(numapin completion bash)
_numapin() {
    local line directive=4 current="${COMP_WORDS[COMP_CWORD]}"
    local -a words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    COMPREPLY=()
    while IFS= read -r line; do
        case "$line" in
            :*) directive="${line#:}" ;;
            *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("${COMP_WORDS[0]}" completion candidates -- "${words[@]}" 2>/dev/null)
    if ((directive & 2)); then
        compopt -o nospace
    fi
    if ! ((directive & 4)); then
        [[ "$current" == "=" ]] && current=""
        compopt -o filenames
        while IFS= read -r line; do
            COMPREPLY+=("$line")
        done < <(compgen -f -- "$current")
    fi
}
complete -F _numapin numapin
"""

ZSH: Final = r"""#compdef numapin
# Completion of numapin for zsh:  source <(numapin completion zsh)
_numapin() {
    local line directive=4
    local -a found options
    while IFS= read -r line; do
        case "$line" in
            :*) directive="${line#:}" ;;
            *)
                local word="${line%%$'\t'*}" help=""
                [[ "$line" == *$'\t'* ]] && help="${line#*$'\t'}"
                found+=("${word//:/\\:}${help:+:$help}")
                ;;
        esac
    done < <("${words[1]}" completion candidates -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    ((directive & 2)) && options=(-S '')
    if ((${#found})); then
        _describe -t words 'numapin' found "${options[@]}"
    fi
    if ! ((directive & 4)); then
        _files
    fi
}
if [[ "$funcstack[1]" == "_numapin" ]]; then
    _numapin "$@"
else
    compdef _numapin numapin
fi
"""

FISH: Final = r"""# Completion of numapin for fish:  numapin completion fish | source
function __numapin_candidates
    set -l tokens (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($tokens[1] completion candidates -- $tokens[2..-1] "$current" 2>/dev/null)
    for line in $lines
        switch $line
            case ':0'
                __fish_complete_path "$current"
            case ':*'
            case '*'
                echo $line
        end
    end
end
complete -c numapin -f -a '(__numapin_candidates)'
"""

SCRIPTS: Final = {"bash": BASH, "zsh": ZSH, "fish": FISH}
"""The script for each shell."""
