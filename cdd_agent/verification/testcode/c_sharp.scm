(comment) @comment

(method_declaration
  (attribute_list (attribute name: (_) @_mark))
  name: (identifier) @name
  body: (_) @body
  (#match? @_mark "(^|\\.)(Test|Fact|Theory|TestMethod|TestCase|DataTestMethod|\\w+(Fact|Theory))$")) @test
[(class_declaration) (struct_declaration) (record_declaration)] @suite

(attribute name: (identifier) @_mark (#match? @_mark "^(Ignore|Explicit|Skip)$")) @skip
(attribute_argument name: (identifier) @_mark (#match? @_mark "^(Skip|Ignore|Explicit)$")) @skip
(invocation_expression
  function: (member_access_expression expression: (identifier) @_on name: (identifier) @_call)
  (#any-of? @_on "Assert" "Skip") (#match? @_call "^(Ignore|Inconclusive|Skip\\w*)$")) @skip
(invocation_expression
  function: (member_access_expression expression: (identifier) @_on name: (identifier) @_call)
  (#any-of? @_on "Skip" "Assert" "Assume") (#match? @_call "^(If|IfNot|Unless|When|That)$") (#not-eq? @_on "Assert")) @maybe
(if_statement condition: (boolean_literal) @_if consequence: (_) @dead (#eq? @_if "false"))
(preproc_if condition: (boolean_literal) @_if (#eq? @_if "false")) @dead
(block (return_statement) @return)
[(if_statement) (switch_statement) (try_statement)] @branch

(attribute name: (identifier) @_mark (attribute_argument_list) (#match? @_mark "^(InlineData|TestCase|DataRow|Arguments)$")) @row
(attribute name: (identifier) @_mark (#match? @_mark "^(\\w+Source|MemberData|ClassData|DynamicData|\\w+Values|Random|Range|Values)$")) @computed
[(foreach_statement) (for_statement) (while_statement)] @loop

[(throw_statement) (throw_expression)] @check
(invocation_expression function: [(identifier) @call (generic_name (identifier) @call)] arguments: (_) @args)
(invocation_expression
  function: (member_access_expression expression: (_) @on name: [(identifier) @call (generic_name (identifier) @call)])
  arguments: (_) @args)
[(string_literal) (verbatim_string_literal) (raw_string_literal) (character_literal) (integer_literal) (real_literal)] @value
