#compdef kernd
# zsh completion of kernd: the program itself knows what a word may become.

_kernd() {
    local line
    local -a offered
    for line in "${(@f)$("$words[1]" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
        '') ;;
        :files) _files ;;
        :directories) _files -/ ;;
        *) offered+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
        esac
    done
    if (( $#offered )); then
        _describe kernd offered
    fi
}

if [[ $funcstack[1] == _kernd ]]; then
    _kernd "$@"
else
    compdef _kernd kernd
fi
