(comment) @comment

(function_call
  name: (identifier) @word
  arguments: [(arguments . (string) @name) (arguments . (_) @name . (function_definition))]
  (#match? @word "^(it|test|specify|pending)$")) @test
(function_call
  name: (identifier) @word
  arguments: (arguments . (string) @name)
  (#match? @word "^(describe|context|insulate|expose)$")) @suite
(arguments (function_definition body: (_) @body))
(function_declaration
  name: [(identifier) @name (dot_index_expression field: (identifier) @name) (method_index_expression method: (identifier) @name)]
  body: (_)? @body
  (#match? @name "^test")) @test

((identifier) @skip (#eq? @skip "pending"))
(block (return_statement) @return)
(if_statement) @branch
[(for_statement) (while_statement)] @loop

(function_call name: (identifier) @call arguments: (_) @args)
(function_call name: [
  (dot_index_expression table: (_) @on field: (identifier) @call)
  (method_index_expression table: (_) @on method: (identifier) @call)] arguments: (_) @args)
[(string) (number)] @value
