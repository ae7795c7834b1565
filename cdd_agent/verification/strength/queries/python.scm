(comparison_operator operators: _ @operator)
(boolean_operator operator: _ @operator)
(not_operator argument: (_) @operand) @negation

[(true) (false) (integer) (float) (string)] @literal

((return_statement (_) @returned) (#set! nothing "None"))

((expression_statement (call)) @deleted (#set! instead "pass"))
((expression_statement (await (call))) @deleted (#set! instead "pass"))
((expression_statement (augmented_assignment)) @deleted (#set! instead "pass"))
((expression_statement
  (assignment left: [(attribute) (subscript)] right: (_)) @_assigned) @deleted
 (#set! instead "pass"))
((raise_statement) @deleted (#set! instead "pass"))

; no code that runs
[(import_statement) (import_from_statement) (future_import_statement) (type)] @ignored
(decorator) @ignored
; docstrings, and texts as comments
(expression_statement (string)) @ignored
(expression_statement (concatenated_string)) @ignored
(module (expression_statement
  (assignment left: (identifier) @_name (#match? @_name "^__\\w+__$"))) @ignored)
((assignment left: (identifier) @_name) @ignored (#eq? @_name "__slots__"))
; names of their own
((assignment left: (identifier) @_name
   right: (call arguments: (argument_list . (string (string_content) @_text) @ignored)))
 (#eq? @_name @_text))
(if_statement condition: (comparison_operator (identifier) @_name)
  (#eq? @_name "__name__")) @ignored
(if_statement condition: [(identifier) (attribute)] @_name
  (#match? @_name "(^|\\.)TYPE_CHECKING$")) @ignored
; logs
((call function: (_) @_called) @ignored
 (#match? @_called "^((self|cls)\\.)?_?(log|logs|logger|logging|console|warnings)\\.\\w+$"))
(raise_statement) @message
(assert_statement) @message
