(binary_expression operator: _ @operator)
(unary_expression "!" (_) @operand) @negation

[(boolean_literal) (integer_literal) (float_literal) (string_literal)
 (raw_string_literal)] @literal

(return_expression (_) @returned)
(function_item body: (block (_expression) @returned . "}"))

((expression_statement
  [(call_expression) (await_expression) (try_expression) (compound_assignment_expr)
   (assignment_expression left: [(field_expression) (index_expression)
                                 (unary_expression)])]) @deleted
 (#set! instead ";"))

; no code that runs, and tests beside it
[(use_declaration) (attribute_item) (inner_attribute_item) (type_arguments)
 (array_type)] @ignored
((attribute_item) @_mark . (attribute_item)* . [(mod_item) (function_item)] @ignored
 (#match? @_mark "cfg\\(test\\)|\\btest\\]"))
(macro_invocation) @ignored
; messages of failures
((call_expression function: (field_expression field: (_) @_called)) @message
 (#match? @_called "^(expect|context|with_context)$"))
