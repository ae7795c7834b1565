[(comment) (block_comment)] @comment

(call_expression
  function: (call_expression function: (identifier) @word arguments: (arguments . [(string) (interpolated_string_expression) (field_expression value: (string))] @name))
  arguments: [(block) (case_block)] @body
  (#any-of? @word "test" "it" "they" "property" "scenario" "Scenario" "ignore")) @test
(call_expression
  function: (call_expression function: (identifier) @word arguments: (arguments . (_) @name))
  arguments: (block) @body
  (#any-of? @word "describe" "feature" "Feature" "suite")) @suite
(infix_expression left: (_) @name operator: (identifier) @word right: [(block) (case_block)] @body (#any-of? @word "in" "ignore")) @test
(infix_expression left: (string) @name operator: [(identifier) (operator_identifier)] @word right: (block) @body (#any-of? @word "should" "must" "can" "when" "-")) @suite
(function_definition (annotation name: (_) @_mark) name: (identifier) @name body: (_) @body (#eq? @_mark "Test")) @test
[(class_definition) (object_definition)] @suite

(call_expression function: (identifier) @skip (#eq? @skip "ignore"))
(infix_expression operator: (identifier) @skip (#eq? @skip "ignore"))
((field_expression value: (string) field: (identifier) @skip) (#any-of? @skip "ignore" "fail"))
((annotation name: (_) @_mark) @skip (#match? @_mark "^(Ignore|Disabled)$"))
(call_expression function: (identifier) @_call (#any-of? @_call "pending" "cancel" "assume")) @maybe
((identifier) @skip (#eq? @skip "pending"))
[(if_expression) (match_expression)] @branch
[(for_expression) (while_expression)] @loop

(throw_expression) @check
(infix_expression operator: (identifier) @check (#match? @check "^(should|must)"))
(call_expression function: (identifier) @call arguments: (_) @args)
(call_expression function: (generic_function function: (identifier) @call) arguments: (_) @args)
(call_expression function: (field_expression value: (_) @on field: (identifier) @call) arguments: (_) @args)
[(string) (interpolated_string_expression) (character_literal) (integer_literal) (floating_point_literal)] @value
