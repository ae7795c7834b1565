; Read after c.scm.
(if_statement condition: (condition_clause value: (false)) consequence: (_) @dead)
(raw_string_literal) @value
(for_range_loop) @loop
(throw_statement) @check
(call_expression function: [(template_function name: (identifier) @call) (qualified_identifier name: (identifier) @call)] arguments: (_) @args)
