(binary_expression operator: _ @operator)
(unary_expression operator: "!" operand: (_) @operand) @negation

[(true) (false) (decimal_integer_literal) (decimal_floating_point_literal)
 (string_literal)] @literal

(return_statement (_) @returned)

((expression_statement
  [(method_invocation) (update_expression)
   (assignment_expression left: [(field_access) (array_access)])]) @deleted
 (#set! instead ";"))
((expression_statement (assignment_expression operator: _ @_by)) @deleted
 (#match? @_by "^..+$") (#set! instead ";"))

; no code that runs
[(import_declaration) (package_declaration) (type_arguments) (annotation)
 (marker_annotation)] @ignored
; loops change their own counters
(for_statement update: (_) @ignored)
; logs
((method_invocation object: (_) @_logger) @ignored
 (#match? @_logger "(?i)^(\\w+\\.)*(log|logger)$"))
(throw_statement) @message
