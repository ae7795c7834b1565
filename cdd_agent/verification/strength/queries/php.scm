(binary_expression operator: _ @operator)
(unary_op_expression operator: "!" argument: (_) @operand) @negation

[(boolean) (integer) (float) (string) (encapsed_string)] @literal

(return_statement (_) @returned)
(arrow_function body: (_) @returned)

((expression_statement
  [(function_call_expression) (member_call_expression) (scoped_call_expression)
   (nullsafe_member_call_expression) (update_expression)
   (augmented_assignment_expression) (throw_expression)
   (assignment_expression left: [(member_access_expression) (subscript_expression)
                                 (scoped_property_access_expression)])]) @deleted
 (#set! instead ";"))

; no code that runs
[(namespace_use_declaration) (attribute_list)
 (declare_statement) (include_expression) (include_once_expression)
 (require_expression) (require_once_expression)] @ignored
; loops change their own counters
(for_statement update: (_) @ignored)
; logs
((function_call_expression function: (_) @_called) @ignored
 (#match? @_called "^(error_log|trigger_error|syslog)$"))
((member_call_expression object: (_) @_logger) @ignored
 (#match? @_logger "(?i)(^|>)\\$?(log|logger)$"))
(throw_expression) @message
