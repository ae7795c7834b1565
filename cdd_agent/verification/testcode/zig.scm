(comment) @comment

(test_declaration [(string) (identifier)] @name (block) @body) @test
((error_type (identifier) @_error) @skip (#eq? @_error "SkipZigTest"))
[(if_statement) (switch_expression)] @branch
[(for_statement) (while_statement)] @loop

(call_expression function: (identifier) @call) @args
(call_expression function: (field_expression object: (_) @on member: (identifier) @call)) @args
[(string) (character) (integer) (float)] @value
