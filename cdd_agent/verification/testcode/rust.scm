[(line_comment) (block_comment)] @comment

(attribute_item) @mark
((attribute_item) @test_mark (#match? @test_mark "^#\\[(\\w+::)*(test|rstest|test_case|bench|quickcheck|wasm_bindgen_test|proptest|case)\\b"))
(function_item name: (identifier) @name body: (block) @body) @marked
(mod_item) @suite
(attribute_item (attribute (identifier) @_mark) (#eq? @_mark "ignore")) @skip
(attribute_item (attribute (identifier) @_mark arguments: (token_tree) @_said) (#eq? @_mark "cfg_attr") (#match? @_said "\\bignore\\b")) @maybe
(attribute_item (attribute [(identifier) (scoped_identifier)] @_mark arguments: (token_tree)) (#match? @_mark "(^|:)(case|test_case)$")) @row

(block (expression_statement (return_expression) @return))
(if_expression condition: (boolean_literal) @_if consequence: (_) @dead (#eq? @_if "false"))
[(if_expression) (match_expression)] @branch
(for_expression value: (array_expression (_) @item)) @loop
[(for_expression) (while_expression) (loop_expression)] @loop

(macro_invocation macro: [(identifier) @call (scoped_identifier name: (identifier) @call)] (token_tree) @args)
(call_expression function: [(identifier) @call (field_expression field: (field_identifier) @call) (scoped_identifier name: (identifier) @call)] arguments: (_) @args)
(token_tree (identifier) @call . (token_tree "(") @args)
[(string_literal) (raw_string_literal) (char_literal) (integer_literal) (float_literal)] @value

; Tests that macros make: rgtest!(name, |dir, cmd| { … }), and the template of such a macro.
(macro_invocation macro: (identifier) @word (token_tree . (identifier) @name) (#match? @word "test(s|_case)?$")) @test
((macro_definition name: (identifier) @name) @test (#match? @test "#\\[test\\]"))
