; Read after c.scm.
(method_definition (identifier) @name (compound_statement) @body (#match? @name "^test")) @test
(message_expression receiver: (_) @on method: (identifier) @call)
