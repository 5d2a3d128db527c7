# bash completion of kernd: the program itself knows what a word may become.
# shellcheck shell=bash

_kernd() {
    local IFS=$'\n' line word=$2
    local -a files=() words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    COMPREPLY=()
    # bash splits --name=value into three words.
    if [[ ${COMP_WORDBREAKS} == *=* ]]; then
        if [[ $COMP_CWORD -ge 2 && ${COMP_WORDS[COMP_CWORD]} == "=" ]]; then
            words=("${COMP_WORDS[@]:1:COMP_CWORD-1}" "")
        elif [[ $COMP_CWORD -ge 3 && ${COMP_WORDS[COMP_CWORD-1]} == "=" ]]; then
            words=("${COMP_WORDS[@]:1:COMP_CWORD-2}" "$word")
        fi
    fi
    while read -r line; do
        case $line in
        :files) mapfile -t files < <(compgen -f -- "$word") ;;
        :directories) mapfile -t files < <(compgen -d -- "$word") ;;
        *:$'\t'*)
            compopt -o nospace
            COMPREPLY+=("${line%%$'\t'*}")
            ;;
        *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("$1" completion words -- "${words[@]}" 2>/dev/null)
    # Only where there are some: bash would write the colon of `demo:` as that of a file's name.
    if ((${#files[@]})); then
        compopt -o filenames
        COMPREPLY+=("${files[@]}")
    fi
}

complete -F _kernd kernd
