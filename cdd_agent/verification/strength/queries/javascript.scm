(binary_expression operator: _ @operator)
(unary_expression operator: "!" argument: (_) @operand) @negation

[(true) (false) (number) (string) (template_string)] @literal

((return_statement (_) @returned) (#set! nothing "null"))
((arrow_function body: (expression) @returned) (#set! nothing "null"))

((expression_statement
  [(call_expression) (await_expression) (augmented_assignment_expression)
   (update_expression)
   (assignment_expression left: [(member_expression) (subscript_expression)])
   (unary_expression operator: "delete")]) @deleted
 (#set! instead ";"))
((throw_statement) @deleted (#set! instead ";"))

; no code that runs
(import_statement) @ignored
(export_statement source: (_)) @ignored
((call_expression function: (identifier) @_called) @ignored
 (#eq? @_called "require"))
(expression_statement (string)) @ignored
(decorator) @ignored
; loops change their own counters
(for_statement increment: (_) @ignored)
; the look of a page
(jsx_attribute) @message
; logs
((call_expression function: (_) @_called) @ignored
 (#match? @_called "^(this\\._?)?(console|log|logger|debug|winston)(\\.\\w+)?$"))
(throw_statement) @message
