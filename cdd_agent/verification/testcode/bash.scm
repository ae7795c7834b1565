(comment) @comment

; @test "…" { … } of bats, which is read as two commands
((command name: (command_name) @word argument: [(string) (raw_string)] @name) @test . (compound_statement) @body (#eq? @word "@test"))
(function_definition name: (word) @name body: (_) @body (#match? @name "^test")) @test

(command name: (command_name) @_call (#eq? @_call "skip")) @skip
(compound_statement (command name: (command_name) @return) (#any-of? @return "return"))
[(if_statement) (list) (case_statement) (while_statement)] @branch
[(for_statement) (while_statement)] @loop

(test_command) @check
(command name: (command_name) @check (#any-of? @check "test" "diff" "cmp" "grep" "exit" "die" "false"))
(command name: (command_name) @call)
[(string) (raw_string) (number)] @value
