(binary operator: _ @operator)
(unary operator: ["!" "not"] operand: (_) @operand) @negation

[(true) (false) (integer) (float) (string)] @literal

((return (argument_list) @returned) (#set! nothing "nil"))
((method body: (body_statement (_expression) @returned .)) (#set! nothing "nil"))

((method body: (body_statement
  [(call) (operator_assignment)
   (assignment left: [(call) (element_reference) (instance_variable)])] @deleted))
 (#set! instead "nil"))
((then
  [(call) (operator_assignment)
   (assignment left: [(call) (element_reference) (instance_variable)])] @deleted)
 (#set! instead "nil"))
((else
  [(call) (operator_assignment)
   (assignment left: [(call) (element_reference) (instance_variable)])] @deleted)
 (#set! instead "nil"))

; no code that runs
((call !receiver method: (identifier) @_called) @ignored
 (#match? @_called "^(require|require_relative|load|autoload|include|extend|prepend)$"))
; logs
((call receiver: (_) @_logger) @ignored
 (#match? @_logger "(?i)^(\\w+\\.)*@?(log|logger)$"))
((call method: (identifier) @_called) @message
 (#eq? @_called "raise"))
