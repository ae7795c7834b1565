(binary_expression operator: _ @operator)
(unary_expression operator: "!" argument: (_) @operand) @negation

[(number_literal) (float_literal) (string_literal)] @literal
((identifier) @literal
 (#any-of? @literal "true" "false"))

(return_expression (expression) @returned)
(function_declaration (function_body "=" (expression) @returned))

((block (call_expression) @deleted) (#set! instead "Unit"))
((block (assignment left: [(navigation_expression) (index_expression)]) @deleted)
 (#set! instead "Unit"))
((block (assignment operator: _ @_by) @deleted)
 (#match? @_by "^..+$") (#set! instead "Unit"))
((block (unary_expression operator: ["++" "--"]) @deleted) (#set! instead "Unit"))

; no code that runs
[(import) (package_header) (annotation) (type_arguments)] @ignored
; logs
((call_expression (navigation_expression . (_) @_logger)) @ignored
 (#match? @_logger "(?i)^(\\w+\\.)*(log|logger)$"))
; messages of failures
((call_expression . (identifier) @_called) @message
 (#match? @_called "^(error|check|require|checkNotNull|requireNotNull|\\w+(Exception|Error))$"))
