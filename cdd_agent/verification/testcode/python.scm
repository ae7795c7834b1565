; Not code: comments, docstrings, imports within a block, the receiver of a method.
(comment) @comment
(expression_statement . (string) .) @comment
(block [(import_statement) (import_from_statement)] @comment)
(parameters . (identifier) @comment (#any-of? @comment "self" "cls"))

; Declarations. Any function may hold assertions for others.
(function_definition name: (identifier) @name body: (block) @body (#match? @name "^test")) @test
(function_definition name: (identifier) @name body: (block) @body (#not-match? @name "^test")) @helper
(class_definition name: (identifier) @name (#match? @name "^Test")) @suite
(class_definition
  name: (identifier) @name
  superclasses: (argument_list (_) @_base (#not-eq? @_base "object"))) @suite
(class_definition name: (identifier) @name) @class
(decorated_definition (decorator) @mark)
(block) @block

; The name has another meaning from here on.
(assignment left: (identifier) @forget)
(delete_statement [(identifier) @forget (expression_list (identifier) @forget)])

; Never runs.
(if_statement condition: [(false) (none)] consequence: (_) @dead)
(if_statement condition: (integer) @_zero consequence: (_) @dead (#eq? @_zero "0"))
(if_statement condition: (true) alternative: (else_clause) @dead)
(while_statement condition: (false) body: (_) @dead)
(block (return_statement) @return)
[(if_statement) (try_statement) (for_statement) (while_statement) (match_statement)] @branch

; Skipped by a mark: certainly if the first argument is a constant or there is none.
(decorator
  [(identifier) @_mark (attribute attribute: (identifier) @_mark)]
  (#match? @_mark "(?i)^(skip|xfail|expectedfailure)$")) @skip
(decorator (call
  function: [(identifier) @_mark (attribute attribute: (identifier) @_mark)]
  arguments: [
    (argument_list "(" . ")")
    (argument_list
      . [(string) (concatenated_string) (true) (false) (none) (integer) (keyword_argument)])]
  (#match? @_mark "(?i)^(skip(if|unless)?|xfail)$"))) @skip
(decorator (call
  function: [(identifier) @_mark (attribute attribute: (identifier) @_mark)]
  (#match? @_mark "(?i)^(skip(if|unless)?|xfail)$"))) @maybe

; Skipped with everything in a module or class.
(assignment
  left: (identifier) @_name
  right: [
    (attribute attribute: (identifier) @_mark)
    (call function: (attribute attribute: (identifier) @_mark) arguments: (argument_list "(" . [")" (string) (true) (keyword_argument)]))
    (list [
      (attribute attribute: (identifier) @_mark)
      (call function: (attribute attribute: (identifier) @_mark) arguments: (argument_list "(" . [")" (string) (true) (keyword_argument)]))])]
  (#eq? @_name "pytestmark") (#match? @_mark "^(skip(if)?|xfail)$")) @skip
(assignment
  left: (identifier) @_name
  right: [
    (call function: (attribute attribute: (identifier) @_mark))
    (list (call function: (attribute attribute: (identifier) @_mark)))]
  (#eq? @_name "pytestmark") (#match? @_mark "^(skip(if)?|xfail)$")) @maybe
(assignment left: (identifier) @_name right: (false) (#eq? @_name "__test__")) @skip

; Skipped while it runs.
([(expression_statement (call function: [(identifier) @_call (attribute attribute: (identifier) @_call)]))
  (assignment right: (call function: [(identifier) @_call (attribute attribute: (identifier) @_call)]))
  (raise_statement [
    (identifier) @_call
    (attribute attribute: (identifier) @_call)
    (call function: [(identifier) @_call (attribute attribute: (identifier) @_call)])])] @skip
  (#any-of? @_call "skip" "skipTest" "SkipTest" "xfail" "importorskip"))

; Sets of values that a test runs for.
(decorator (call
  function: [(identifier) @_mark (attribute attribute: (identifier) @_mark)]
  arguments: [
    (argument_list . (_) . [(list (_) @row) (tuple (_) @row)])
    (argument_list (keyword_argument name: (identifier) @_key value: [(list (_) @row) (tuple (_) @row)] (#eq? @_key "argvalues")))]
  (#eq? @_mark "parametrize"))) @table
(decorator (call
  function: [(identifier) @_mark (attribute attribute: (identifier) @_mark)]
  arguments: (argument_list . [(list (_) @row) (tuple (_) @row)])
  (#any-of? @_mark "expand" "data"))) @table
(decorator (call
  function: (attribute attribute: (identifier) @_mark)
  arguments: [
    (argument_list . (_) . [(identifier) (call) (attribute) (list_comprehension) (generator_expression) (binary_operator) (subscript) (list_splat)])
    (argument_list . (_) . [(list (list_splat)) (tuple (list_splat))])
    (argument_list (keyword_argument name: (identifier) @_key value: [(identifier) (call) (attribute) (list_comprehension)] (#eq? @_key "argvalues")))]
  (#eq? @_mark "parametrize"))) @computed
(for_statement right: [(list (_) @item) (tuple (_) @item)]) @loop

; Contents.
(assert_statement . (_) @args) @check
(assert_statement (_) . (_) @message)
(call function: [(identifier) @call (attribute attribute: (identifier) @call)] arguments: (_) @args)
[(string) (integer) (float)] @value
