(binary_expression operator: _ @operator)
(unary_expression operator: ["!"] argument: (_) @operand) @negation

[(true) (false) (number_literal) (string_literal)] @literal

(return_statement (_) @returned)

((expression_statement
  [(call_expression) (update_expression)
   (assignment_expression left: [(field_expression) (subscript_expression)
                                 (pointer_expression)])]) @deleted
 (#set! instead ";"))
((expression_statement (assignment_expression operator: _ @_by)) @deleted
 (#match? @_by "^..+$") (#set! instead ";"))

; no code that runs
[(preproc_include) (preproc_def) (preproc_if) (preproc_elif) (attribute_declaration)
 (linkage_specification) (gnu_asm_expression)] @ignored
(array_declarator size: (_) @ignored)
; loops change their own counters
(for_statement update: (_) @ignored)
; logs
((call_expression function: (_) @_called) @ignored
 (#match? @_called "(?i)^(\\w+_)?(log|debug|trace|assert|perror|syslog)(_\\w+|f)?$"))
