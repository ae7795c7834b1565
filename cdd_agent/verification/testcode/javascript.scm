(comment) @comment

; it("…", () => { … }), it.skip("…", …), it.each([…])("…", …), Deno.test("…", …)
(call_expression
  function: [
    (identifier) @word
    (member_expression object: [(identifier) @word (member_expression object: (identifier) @word)] property: (_) @_property)
    (call_expression function: (member_expression object: [(identifier) @word (member_expression object: (identifier) @word)] property: (_) @_property))]
  arguments: [
    (arguments . [(string) (template_string)] @name)
    (arguments . [(identifier) (member_expression) (binary_expression) (call_expression)] @name [(arrow_function) (function_expression)])]
  (#match? @word "^([xf]?(it|test|specify)|testWidgets)$")
  (#not-match? @_property "^(describe|step|use|extend|before|after|info)")) @test
(call_expression
  function: (member_expression object: (identifier) @word property: (property_identifier) @_property)
  arguments: [(arguments . [(string) (template_string)] @name) (arguments . (function_expression name: (identifier) @name))]
  (#any-of? @word "t" "Deno" "QUnit") (#any-of? @_property "test" "it")) @test
(call_expression
  function: [
    (identifier) @word
    (member_expression object: [(identifier) @word (member_expression object: (identifier) @word)] property: (_) @_property)
    (call_expression function: (member_expression object: (identifier) @word property: (_) @_property))]
  arguments: [
    (arguments . [(string) (template_string)] @name)
    (arguments . [(identifier) (member_expression) (binary_expression) (call_expression)] @name [(arrow_function) (function_expression)])]
  (#match? @word "^[xf]?(describe|context|suite|group)$")) @suite
(call_expression
  function: (member_expression object: [(identifier) @word (member_expression object: (identifier) @word)] property: (property_identifier) @_property)
  arguments: (arguments . (_) @name)
  (#eq? @word "test") (#match? @_property "^describe")) @suite
(arguments [(arrow_function body: (_) @body) (function_expression body: (_) @body)])

; Skipped, or alone.
(call_expression
  function: (identifier) @skip
  (#match? @skip "^x(it|test|specify|describe|context)$"))
(call_expression
  function: (identifier) @only
  (#match? @only "^f(it|test|specify|describe|context)$"))
(call_expression
  function: [
    (member_expression object: [(identifier) @_word (member_expression object: (identifier) @_word)] "." @cut property: (property_identifier) @skip)
    (member_expression object: (member_expression object: (identifier) @_word "." @cut property: (property_identifier) @skip))
    (call_expression function: (member_expression object: (member_expression object: (identifier) @_word "." @cut property: (property_identifier) @skip)))]
  arguments: (arguments . [(string) (template_string) (identifier) (member_expression) (binary_expression) (call_expression)] . (_))
  (#match? @_word "^(it|test|specify|describe|context|suite|group)$")
  (#any-of? @skip "skip" "todo" "failing" "fixme"))
(call_expression
  function: (member_expression object: (identifier) @_word "." @cut property: (property_identifier) @skip)
  arguments: (arguments . [(string) (template_string)] .)
  (#match? @_word "^(it|test|specify)$") (#any-of? @skip "skip" "todo"))
(call_expression
  function: [
    (member_expression object: [(identifier) @_word (member_expression object: (identifier) @_word)] "." @cut property: (property_identifier) @only)
    (member_expression object: (member_expression object: (identifier) @_word "." @cut property: (property_identifier) @only))
    (call_expression function: (member_expression object: (member_expression object: (identifier) @_word "." @cut property: (property_identifier) @only)))]
  (#match? @_word "^(it|test|specify|describe|context|suite|group)$")
  (#eq? @only "only"))
(call_expression
  function: (call_expression function: (member_expression object: (identifier) @_word property: (property_identifier) @_property) @maybe)
  (#match? @_word "^(it|test|specify|describe|context|suite|group)$")
  (#any-of? @_property "skipIf" "runIf" "if"))
(call_expression
  function: [(identifier) @_word (member_expression object: (identifier) @_word)]
  arguments: (arguments . (_) . (object (pair key: (property_identifier) @_key value: (_) @_value) @skip))
  (#match? @_word "^(it|test|specify|describe|suite|t)$")
  (#any-of? @_key "skip" "todo") (#not-eq? @_value "false"))
(call_expression
  function: (member_expression object: [(this) (identifier)] @_on property: (property_identifier) @_property)
  (#any-of? @_on "this" "t" "ctx" "context") (#any-of? @_property "skip" "todo")) @skip
(call_expression
  function: (member_expression object: (identifier) @_word property: (property_identifier) @_property)
  arguments: (arguments "(" . ")")
  (#eq? @_word "test") (#any-of? @_property "skip" "fixme" "fail")) @skip
(call_expression
  function: (member_expression object: (identifier) @_word property: (property_identifier) @_property)
  arguments: (arguments . [(binary_expression) (unary_expression) (identifier) (member_expression) (call_expression) (arrow_function)] . (_)? .)
  (#eq? @_word "test") (#any-of? @_property "skip" "fixme" "fail")) @maybe

; Never runs, or perhaps.
(if_statement condition: (parenthesized_expression (false)) consequence: (_) @dead)
(statement_block (return_statement) @return)
[(if_statement) (ternary_expression) (switch_statement) (try_statement)] @branch

; Sets of values.
(call_expression
  function: (member_expression object: [(identifier) @_word (member_expression object: (identifier) @_word)] property: (property_identifier) @_property)
  arguments: (arguments . (array (_) @row))
  (#match? @_word "^[xf]?(it|test|specify|describe|context|suite)$") (#any-of? @_property "each" "for")) @table
(call_expression
  function: (member_expression object: [(identifier) @_word (member_expression object: (identifier) @_word)] property: (property_identifier) @_property)
  arguments: [(template_string) (arguments . [(identifier) (call_expression) (member_expression)]) (arguments . (array (spread_element)))]
  (#match? @_word "^[xf]?(it|test|specify|describe|context|suite)$") (#any-of? @_property "each" "for")) @computed
(for_in_statement right: (array (_) @item)) @loop
(call_expression
  function: (member_expression object: (array (_) @item) property: (property_identifier) @_property)
  (#any-of? @_property "forEach" "map")) @loop
[(for_in_statement) (for_statement) (while_statement)] @loop

; Contents.
(throw_statement) @check
(member_expression property: (property_identifier) @check (#eq? @check "should"))
(call_expression
  function: (member_expression object: (identifier) @_on property: (property_identifier) @check)
  (#eq? @_on "t")
  (#match? @check "^(is|not|ok|notOk|true|false|truthy|falsy|equals?|notEqual|same|match|pass|like|snapshot|(not)?(Deep|Strict)\\w+|(deep|strict)\\w+|regex|throws\\w*)$"))
(call_expression function: (identifier) @call arguments: (_) @args)
(call_expression function: (member_expression object: (_) @on property: (property_identifier) @call) arguments: (_) @args)
[(string) (template_string) (number) (regex)] @value
