(comment) @comment
(preproc_if condition: (number_literal) @_if (#eq? @_if "0")) @dead

; TEST(Group, name) { … }
(function_definition
  declarator: (function_declarator declarator: (identifier) @word parameters: (parameter_list) @name)
  body: (compound_statement) @body
  (#match? @word "^((TYPED_)?TEST(_[FP])?|TEST_CASE\\w*|BOOST_\\w*TEST_CASE\\w*|TEST_METHOD|CTEST\\d?|UNIT_TEST|ZTEST\\w*|MU_TEST|Test)$")) @test
((expression_statement (call_expression function: (identifier) @word arguments: (argument_list) @name)) @test
  . (compound_statement) @body
  (#match? @word "^((TYPED_)?TEST(_[FP])?|BOOST_\\w*TEST_CASE\\w*|TEST_METHOD|CTEST\\d?|UNIT_TEST|ZTEST\\w*|MU_TEST|Test)$"))
((expression_statement (call_expression function: (identifier) @word arguments: (argument_list . [(string_literal) (binary_expression . (string_literal)) (identifier)] @name))) @test
  . (compound_statement) @body
  (#match? @word "^(TEST_CASE\\w*|TEMPLATE_TEST_CASE\\w*|SCENARIO\\w*|SUBCASE|SECTION|GIVEN|WHEN|THEN)$"))
(function_definition
  type: (type_identifier) @word
  declarator: (parenthesized_declarator (identifier) @name)
  body: (compound_statement) @body
  (#eq? @word "START_TEST")) @test
; A plain function that the file calls.
(function_definition
  declarator: (function_declarator declarator: (identifier) @name)
  body: (compound_statement) @body
  (#match? @name "^(test\\w*|\\w+_test|should\\w*)$")) @called

((type_identifier) @skip (#match? @skip "^DISABLED_"))
((identifier) @skip (#match? @skip "^(DISABLED_\\w+|GTEST_SKIP\\w*|TEST_IGNORE\\w*)$"))
(compound_statement (return_statement) @return)
[(if_statement) (switch_statement) (preproc_if) (preproc_ifdef)] @branch
[(for_statement) (while_statement)] @loop

(call_expression function: (identifier) @call arguments: (_) @args)
(call_expression function: (field_expression argument: (_) @on field: (field_identifier) @call) arguments: (_) @args)
[(string_literal) (char_literal) (number_literal)] @value
