(binary_expression operator: _ @operator)
(unary_expression operator: "!" operand: (_) @operand) @negation

[(true) (false) (int_literal) (float_literal) (interpreted_string_literal)
 (raw_string_literal)] @literal

(return_statement (expression_list) @returned)

[(expression_statement (call_expression)) (inc_statement) (dec_statement)] @deleted
((assignment_statement left: (expression_list
  . [(selector_expression) (index_expression) (unary_expression)] .)) @deleted)
((assignment_statement operator: _ @_by) @deleted
 (#match? @_by "^..+$"))

; no code that runs
[(import_declaration) (package_clause) (type_declaration)] @ignored
; loops change their own counters
(for_clause update: (_) @ignored)
; logs
((call_expression function: (_) @_called) @ignored
 (#match? @_called "(?i)^(\\w+\\.)*(log|logger|logf|slog|klog|glog|zap)(\\.\\w+)?$"))
; values beside an error, which callers do not read
((return_statement (expression_list (_) @ignored (_) @_error .))
 (#match? @_error "(?i)err"))
; messages of errors
((call_expression function: (_) @_called) @message
 (#match? @_called "^(panic|errors\\.(New|Wrap|Wrapf|Errorf)|fmt\\.Errorf)$"))
