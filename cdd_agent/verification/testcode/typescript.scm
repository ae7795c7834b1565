; Read after javascript.scm.
(call_expression
  function: (member_expression object: [(identifier) @_word (member_expression object: (identifier) @_word)] property: (property_identifier) @_property)
  arguments: (arguments . [(as_expression (array (_) @row)) (satisfies_expression (array (_) @row))])
  (#match? @_word "^[xf]?(it|test|specify|describe|context|suite)$") (#any-of? @_property "each" "for")) @table
