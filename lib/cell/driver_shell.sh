# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2317
#
# driver_shell: the shell of a bash kernel, started by kernd-shell (shell.c) with a path for its
# files and the exit code that $? has at first.
#
# Reads pairs of NUL-terminated words from descriptor 252: a file for standard input, a file of code.
# Runs the code in this very shell, writes its exit code as a line to 253. Where the code ends the
# shell (exit, set -e), what it defined is saved first, and the next shell starts with that.
__kernd_state=$1
__kernd_code=$2
BASH_ARGV0=bash
set --

# Names that the shell itself sets, or that are this file's.
__kernd_is_own() {
    case $1 in
        __kernd_* | _ | BASH | BASHOPTS | BASHPID | BASH_ARGC | BASH_ARGV | BASH_ARGV0 | \
            BASH_COMMAND | BASH_LINENO | BASH_MONOSECONDS | BASH_REMATCH | BASH_SOURCE | \
            BASH_SUBSHELL | BASH_VERSINFO | BASH_VERSION | COMP_WORDBREAKS | DIRSTACK | \
            EPOCHREALTIME | EPOCHSECONDS | EUID | FUNCNAME | GROUPS | HISTCMD | LINENO | OPTERR | \
            OPTIND | PIPESTATUS | PPID | RANDOM | SECONDS | SHELLOPTS | SHLVL | SRANDOM | UID) ;;
        *) return 1 ;;
    esac
}

# Prints commands that make what this shell has: directory, variables, functions, aliases, traps.
__kernd_describe() {
    builtin local __kernd_name
    builtin printf 'cd -- %q\numask %s\n' "$PWD" "$(builtin umask)"
    for __kernd_name in $(builtin compgen -v); do
        __kernd_is_own "$__kernd_name" || builtin declare -p "$__kernd_name"
    done
    for __kernd_name in $(builtin compgen -A function); do
        case $__kernd_name in
            __kernd_* | exit) continue ;;
        esac
        builtin declare -f "$__kernd_name"
        case $(builtin declare -pF "$__kernd_name") in
            'declare -fx '*) builtin printf 'declare -fx %s\n' "$__kernd_name" ;;
        esac
    done
    builtin alias -p
    builtin trap -p
    builtin shopt -p
}

# Options go to a file of their own, read last: set -e must not end the reading. An EXIT trap of the
# code is not for the next shell; it still runs at the end of this one. No interrupt ends this.
__kernd_save() {
    builtin trap '' INT
    builtin set +o >"$__kernd_state.options"
    builtin set +euxvn
    builtin local __kernd_trap
    __kernd_trap=$(builtin trap -p EXIT)
    builtin trap - EXIT
    __kernd_describe >"$__kernd_state" 2>/dev/null
    case $__kernd_trap in
        *__kernd_save*) ;;
        *) builtin eval "$__kernd_trap" ;;
    esac
    : >"$__kernd_state.done"
}

# Also where the code has an EXIT trap of its own. In a subshell it is a plain exit.
exit() {
    builtin local __kernd_status=${1-$?}
    if [[ $BASHPID == "$$" ]]; then
        __kernd_save 2>/dev/null
    fi
    builtin exit "$__kernd_status"
}

# $? of the cell before is what the next one finds (but under set -e, which it would set off).
__kernd_last() {
    builtin return "$__kernd_code"
}

if [[ -e $__kernd_state ]]; then
    # shellcheck disable=SC1090
    { . "$__kernd_state"; } 2>/dev/null
    # shellcheck disable=SC1090
    { . "$__kernd_state.options"; } 2>/dev/null
else
    builtin printf 'ready %s\n' "$BASH_VERSION" >&253
fi
builtin trap '__kernd_save 2>/dev/null' EXIT
builtin trap 'exit 130' INT

# Nothing of this loop shows, even under set -x: its own standard error is nowhere.
while IFS= builtin read -r -d '' -u 252 __kernd_input &&
    IFS= builtin read -r -d '' -u 252 __kernd_file; do
    [[ $- == *e* ]] || __kernd_last
    # shellcheck disable=SC1090
    builtin . "$__kernd_file" <"$__kernd_input" 1>&250 2>&251 250>&- 251>&- 252<&- 253>&-
    __kernd_code=$?
    builtin printf '%d\n' "$__kernd_code" >&253
done 2>/dev/null
builtin exit 0
