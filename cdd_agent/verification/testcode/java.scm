[(line_comment) (block_comment)] @comment

(method_declaration
  (modifiers [(marker_annotation name: (_) @_mark) (annotation name: (_) @_mark)])
  name: (identifier) @name
  body: (block) @body
  (#match? @_mark "(^|\\.)(Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|Property|Theory)$")) @test
(method_declaration type: (void_type) name: (identifier) @name body: (block) @body (#match? @name "^test\\w")) @test
[(class_declaration) (record_declaration) (interface_declaration)] @suite

(modifiers
  [(marker_annotation name: (_) @_mark) (annotation name: (_) @_mark)] @skip
  (#match? @_mark "(^|\\.)(Disabled|Ignored?|Skip\\w*)$"))
(modifiers
  [(marker_annotation name: (_) @_mark) (annotation name: (_) @_mark)] @maybe
  (#match? @_mark "(^|\\.)(Disabled|Enabled)(If|On|For)\\w*$"))
(method_invocation name: (identifier) @_call (#match? @_call "^assume\\w*$")) @maybe
(if_statement condition: (parenthesized_expression (false)) consequence: (_) @dead)
(block (return_statement) @return)
[(if_statement) (switch_expression) (try_statement)] @branch

(annotation
  name: (identifier) @_mark
  arguments: (annotation_argument_list [
    (element_value_array_initializer (_) @row)
    (element_value_pair value: (element_value_array_initializer (_) @row))])
  (#match? @_mark "^(Csv|Value)Source$")) @table
(annotation name: (identifier) @_mark (#match? @_mark "^(Method|Enum|Arguments|CsvFile|Field)Source$")) @computed
(annotation
  name: (identifier) @_mark
  arguments: (annotation_argument_list (element_value_pair value: (string_literal)))
  (#eq? @_mark "CsvSource")) @computed
[(enhanced_for_statement) (for_statement) (while_statement)] @loop

(throw_statement) @check
(assert_statement . (_) @args) @check
(method_invocation !object name: (identifier) @call arguments: (_) @args)
(method_invocation object: (_) @on name: (identifier) @call arguments: (_) @args)
[(string_literal) (character_literal) (decimal_integer_literal) (hex_integer_literal) (decimal_floating_point_literal)] @value
