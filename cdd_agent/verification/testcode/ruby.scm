(comment) @comment

(method name: (identifier) @name body: (_)? @body (#match? @name "^test")) @test
(call
  !receiver
  method: (identifier) @word
  arguments: (argument_list . [(string) (simple_symbol) (constant) (scope_resolution) (identifier) (call)] @name)
  (#match? @word "^[xf]?(it|specify|test|should|scenario|property)$")) @test
(call
  method: (identifier) @word
  arguments: (argument_list . (_) @name)
  (#match? @word "^[xf]?(describe|context|feature)$")) @suite
(call !arguments method: (identifier) @word block: (_) (#match? @word "^[xf]?(it|specify)$")) @test
(class name: (_) @name) @suite
(do_block body: (_) @body)
(block body: (_) @body)

(call method: (identifier) @skip (#match? @skip "^x(it|specify|scenario|describe|context|feature)$"))
(call
  method: (identifier) @_word
  arguments: (argument_list [
    (simple_symbol) @skip
    (pair key: (hash_key_symbol) @_key) @skip])
  (#match? @_word "^(it|specify|test|scenario|describe|context|feature)$")
  (#match? @skip "^:?(skip|pending)\\b"))
([(identifier) @skip (call !receiver method: (identifier) @skip)] (#any-of? @skip "skip" "pending"))
(if_modifier body: (_) condition: (false)) @dead
(if condition: (false) consequence: (_) @dead)
(body_statement (return) @return)
[(if) (unless) (if_modifier) (unless_modifier) (case) (rescue)] @branch

(call receiver: (array (_) @item) method: (identifier) @_each (#any-of? @_each "each" "map" "each_with_index")) @loop
(call method: (identifier) @_each block: (_) (#match? @_each "^(each|times|map)")) @loop
[(for) (while)] @loop

((identifier) @check (#any-of? @check "is_expected" "raise"))
(call receiver: (_) @on method: (_) @call arguments: (_)? @args)
(call !receiver method: (identifier) @call arguments: (_) @args)
[(string) (integer) (float) (simple_symbol) (regex) (string_array) (symbol_array)] @value
