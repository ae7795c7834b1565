# Completes cdd in fish. `cdd completion fish` prints this script.

# Prints the command, the number of its next argument, and the folder of `-C`.
function __cdd_read_line
    set -l command ''
    set -l place 0
    set -l folder .
    set -l flag ''
    set -l typed (commandline -opc)
    for word in $typed[2..-1]
        if test -n "$flag"
            if contains -- $flag -C --project
                set folder $word
            end
            set flag ''
        else if string match -q -- '-*' $word
            if contains -- $word @FLAGS_WITH_VALUES@
                set flag $word
            end
        else if test -z "$command"
            set command $word
        else
            set place (math $place + 1)
        end
    end
    printf '%s\n' "$command" $place $folder
end

# True if the line has the command and, if given, this argument next. `0+`: also later.
function __cdd_at
    set -l line (__cdd_read_line)
    test "$line[1]" = "$argv[1]"; or return 1
    test (count $argv) -gt 1; or return 0
    if string match -q -- '*+' $argv[2]
        test $line[2] -ge (string trim -c + $argv[2])
    else
        test $line[2] -eq $argv[2]
    end
end

function __cdd_tickets
    set -l line (__cdd_read_line)
    cdd -C $line[3] completion tickets 2>/dev/null
end

complete -c cdd -f
