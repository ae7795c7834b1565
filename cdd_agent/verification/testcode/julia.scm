[(line_comment) (block_comment)] @comment

(macrocall_expression
  (macro_identifier (identifier) @word)
  (macro_argument_list (string_literal) @name [(compound_statement) (for_statement)] @body)
  (#match? @word "^testset$")) @test
(macrocall_expression (macro_identifier (identifier) @_macro) (#match? @_macro "^test_(skip|broken)$")) @maybe
(if_statement) @branch
[(for_statement) (while_statement)] @loop

(macrocall_expression (macro_identifier (identifier) @check) (macro_argument_list) @args (#match? @check "^(test(_throws|_logs|_warn|_nowarn)?|assert)$"))
(call_expression . [(identifier) @call (field_expression (_) @on (identifier) @call .)] (argument_list) @args)
[(string_literal) (character_literal) (integer_literal) (float_literal)] @value
