# fish completion of kernd: the program itself knows what a word may become.

function __kernd_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    for line in ($words[1] completion words -- $words[2..-1] "$word" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path $word
            case :directories
                __fish_complete_directories $word
            case '*'
                echo $line
        end
    end
end

complete -c kernd -f -a '(__kernd_complete)'
