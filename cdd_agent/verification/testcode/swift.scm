[(comment) (multiline_comment)] @comment

(function_declaration name: (simple_identifier) @name body: (function_body) @body (#match? @name "^test")) @test
(function_declaration
  (modifiers (attribute (user_type) @_mark))
  name: (simple_identifier) @name
  body: (function_body) @body
  (#eq? @_mark "Test")) @test
(class_declaration) @suite

((simple_identifier) @skip (#eq? @skip "XCTSkip"))
(call_expression (simple_identifier) @_call (#match? @_call "^XCTSkip(If|Unless)$")) @maybe
(attribute (call_expression (prefix_expression target: (simple_identifier) @_trait)) (#eq? @_trait "disabled")) @skip
(attribute (call_expression (prefix_expression target: (simple_identifier) @_trait)) (#eq? @_trait "enabled")) @maybe
(statements (control_transfer_statement) @return (#match? @return "^return"))
[(if_statement) (guard_statement) (switch_statement) (do_statement)] @branch

(attribute (simple_identifier) @_key (array_literal element: (_) @row) (#eq? @_key "arguments")) @table
(attribute (simple_identifier) @_key (#eq? @_key "arguments")) @loop
[(for_statement) (while_statement)] @loop

(macro_invocation (simple_identifier) @check (#any-of? @check "expect" "require"))
(call_expression . (simple_identifier) @call (call_suffix) @args)
(call_expression . (navigation_expression target: (_) @on suffix: (navigation_suffix suffix: (simple_identifier) @call)) (call_suffix) @args)
[(line_string_literal) (multi_line_string_literal) (integer_literal) (real_literal)] @value
