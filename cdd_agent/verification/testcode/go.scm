(comment) @comment
((comment) @skip (#match? @skip "^//\\s*(go:build|\\+build)\\s+ignore\\b"))

(function_declaration name: (identifier) @name body: (block) @body (#match? @name "^(Test|Benchmark|Fuzz|Example)")) @test
(method_declaration name: (field_identifier) @name body: (block) @body (#match? @name "^(Test|Benchmark|Fuzz|Example)")) @test
(call_expression
  function: (selector_expression field: (field_identifier) @_run)
  arguments: (argument_list . [(interpreted_string_literal) (raw_string_literal)] @name (func_literal body: (block) @body))
  (#eq? @_run "Run")) @test

(call_expression
  function: (selector_expression field: (field_identifier) @_call)
  (#match? @_call "^Skip(f|Now)?$")) @skip
(if_statement condition: (false) consequence: (_) @dead)
(statement_list (return_statement) @return)
[(if_statement) (expression_switch_statement) (select_statement)] @branch

; A table: the elements of a slice or map of structs.
(composite_literal
  type: [(slice_type) (array_type) (implicit_length_array_type) (map_type)]
  body: (literal_value [(literal_element (literal_value)) (keyed_element value: (literal_element (literal_value)))] @row)) @table
(for_statement) @loop

(call_expression function: (identifier) @call arguments: (_) @args)
(call_expression function: (selector_expression operand: (_) @on field: (field_identifier) @call) arguments: (_) @args)
[(interpreted_string_literal) (raw_string_literal) (rune_literal) (int_literal) (float_literal)] @value
