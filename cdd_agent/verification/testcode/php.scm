(comment) @comment

(method_declaration name: (name) @name body: (_) @body (#match? @name "^test")) @test
(function_definition name: (name) @name body: (_) @body (#match? @name "^test")) @test
(method_declaration
  attributes: (attribute_list (attribute_group (attribute (_) @_mark)))
  name: (name) @name body: (_) @body
  (#match? @_mark "(^|\\\\)Test$")) @test
((comment) @_mark . (method_declaration name: (name) @name body: (_) @body) @test (#match? @_mark "@test\\b"))
; it('…', function () { … }) of Pest
(function_call_expression
  function: (name) @word
  arguments: (arguments . (argument [(string) (encapsed_string)] @name))
  (#any-of? @word "it" "test")) @test
(function_call_expression
  function: (name) @word
  arguments: (arguments . (argument [(string) (encapsed_string)] @name))
  (#eq? @word "describe")) @suite
(argument [(anonymous_function body: (_) @body) (arrow_function body: (_) @body)])
[(class_declaration) (trait_declaration)] @suite

(member_call_expression
  object: (_) @_test name: (name) @skip
  (#any-of? @skip "skip" "todo") (#match? @_test "^(it|test|describe|todo)\\("))
([(member_call_expression name: (name) @_call) (scoped_call_expression name: (name) @_call)] @skip
  (#match? @_call "^markTest(Skipped|Incomplete)$"))
(attribute (_) @_mark (#match? @_mark "(^|\\\\)Requires\\w*$")) @maybe
(if_statement condition: (parenthesized_expression (boolean) @_if) body: (_) @dead (#eq? @_if "false"))
(compound_statement (return_statement) @return)
[(if_statement) (switch_statement) (try_statement)] @branch

(attribute (_) @_mark (#match? @_mark "(^|\\\\)TestWith(Json)?$")) @row
(attribute (_) @_mark (#match? @_mark "(^|\\\\)DataProvider\\w*$")) @computed
((comment) @computed (#match? @computed "@dataProvider"))
(member_call_expression
  name: (name) @_call
  arguments: (arguments . (argument (array_creation_expression (array_element_initializer) @row)))
  (#eq? @_call "with")) @table
[(foreach_statement) (for_statement) (while_statement)] @loop

(throw_expression) @check
(function_call_expression function: [(name) (qualified_name)] @call arguments: (_) @args)
(member_call_expression object: (_) @on name: (name) @call arguments: (_) @args)
(scoped_call_expression scope: (_) @on name: (name) @call arguments: (_) @args)
[(string) (encapsed_string) (integer) (float)] @value
