(binary_expression operator: _ @operator)
(prefix_unary_expression "!" (_) @operand) @negation

[(boolean_literal) (integer_literal) (real_literal) (string_literal)
 (verbatim_string_literal) (raw_string_literal) (interpolated_string_expression)] @literal

((return_statement (_) @returned) (#set! nothing "default"))
((arrow_expression_clause (_) @returned) (#set! nothing "default"))

((expression_statement
  [(invocation_expression) (await_expression) (postfix_unary_expression)
   (prefix_unary_expression)
   (assignment_expression left: [(member_access_expression)
                                 (element_access_expression)])]) @deleted
 (#set! instead ";"))
((expression_statement (assignment_expression operator: _ @_by)) @deleted
 (#match? @_by "^..+$") (#set! instead ";"))

; no code that runs
[(using_directive) (attribute_list) (type_argument_list)] @ignored
; loops change their own counters
(for_statement update: (_) @ignored)
; logs
((invocation_expression function: (member_access_expression expression: (_) @_logger)) @ignored
 (#match? @_logger "(?i)^(\\w+\\.)*_?(log|logger)$"))
(throw_statement) @message
(throw_expression) @message
