[(line_comment) (block_comment)] @comment

(function_declaration
  (modifiers (annotation [
    (user_type (identifier) @_mark .)
    (constructor_invocation (user_type (identifier) @_mark .))]))
  name: (identifier) @name
  (function_body) @body
  (#match? @_mark "^(Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|Property)$")) @test
; test("…") { … } and "…" { … } of Kotest
(call_expression
  (call_expression (identifier) @word (value_arguments . (value_argument (string_literal) @name)))
  (annotated_lambda) @body
  (#match? @word "^x?(it|test|should|expect|scenario|then|Then)$")) @test
(call_expression
  (call_expression (identifier) @word (value_arguments . (value_argument (string_literal) @name)))
  (annotated_lambda) @body
  (#match? @word "^x?(describe|context|feature|given|Given|when|When)$")) @suite
(call_expression . (string_literal) @name . (annotated_lambda) @body) @test
[(class_declaration) (object_declaration)] @suite

((annotation [
  (user_type (identifier) @_mark .)
  (constructor_invocation (user_type (identifier) @_mark .))]) @skip
  (#match? @_mark "^(Disabled|Ignored?|Skip\\w*)$"))
((annotation [
  (user_type (identifier) @_mark .)
  (constructor_invocation (user_type (identifier) @_mark .))]) @maybe
  (#match? @_mark "^(Disabled|Enabled)(If|On|For)\\w*$"))
(file_annotation) @skip
(call_expression . (identifier) @skip (#match? @skip "^x(it|test|should|describe|context|feature|given|when)$"))
(call_expression . (identifier) @_call (#match? @_call "^assume\\w*$")) @maybe
(if_expression condition: (identifier) @_if . (block) @dead (#eq? @_if "false"))
(block (return_expression) @return)
[(if_expression) (when_expression) (try_expression)] @branch

(annotation (constructor_invocation
  (user_type (identifier) @_mark)
  (value_arguments (value_argument (string_literal)) @row))
  (#eq? @_mark "CsvSource")) @table
(annotation (constructor_invocation
  (user_type (identifier) @_mark)
  (value_arguments (value_argument (collection_literal (_) @row))))
  (#match? @_mark "^(Csv|Value)Source$")) @table
(annotation (constructor_invocation (user_type (identifier) @_mark)) (#match? @_mark "^(Method|Enum|Arguments|CsvFile|Field)Source$")) @computed
[(for_statement) (while_statement)] @loop

(throw_expression) @check
(infix_expression (identifier) @check (#match? @check "^should"))
(call_expression . (identifier) @call (value_arguments) @args)
(call_expression . (navigation_expression (_) @on (identifier) @call .) (value_arguments) @args)
(call_expression . (identifier) @call (annotated_lambda))
[(string_literal) (multiline_string_literal) (character_literal) (number_literal) (float_literal)] @value
